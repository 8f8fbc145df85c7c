import { InputError, quote, shortId, type Id } from '../../codec/index.js'
import { DUAL_SIGNATURE, MAX_FORMULA_DEPTH, MAX_FORMULA_NODES, MAX_LABEL_BYTES, SIGNATURE_FAMILIES, type Atom, type Formula, type Names } from '../../ledger/index.js'

/**
 * Formulas as people write them. Atoms: `ml-dsa-44`, `slh-dsa-sha2-128f`, `bond:LABEL` (of whoever issues the claim),
 * `bond:OWNER:LABEL`; `dual` is both signatures. Connectives: `all(A, B)`, `any(A, B)`, `2of(A, B, C)`.
 */

const FAMILIES = new Map(SIGNATURE_FAMILIES.map((family) => [family.toLowerCase(), family]))

/**
 * @param ownerOf the account of a bond's owner as it was written; undefined where none was.
 * @throws InputError naming `field`, and where it stopped making sense; what `ownerOf` throws.
 */
export async function parseFormula(text: string, field: string, ownerOf: (owner: string | undefined) => Id | Promise<Id>): Promise<Formula> {
  const tokens = text.match(/[(),]|[^(),\s]+/g) ?? []
  let at = 0
  let parts = 0

  const refused = (why: string): InputError => new InputError(field, `${quote(text, 120)}: ${why}`)
  const expectToken = (wanted: string): void => {
    const found = tokens[at++]
    if (found !== wanted) throw refused(`expected ${quote(wanted)} ${found === undefined ? 'at the end' : `before ${quote(found)}`}`)
  }

  async function part(depth: number): Promise<Formula> {
    const word = tokens[at++]
    if (word === undefined || word === '(' || word === ')' || word === ',') {
      throw refused(`expected an atom or all(…), any(…), 2of(…) ${word === undefined ? 'at the end' : `before ${quote(word)}`}`)
    }
    if (depth > MAX_FORMULA_DEPTH) throw refused(`a formula nests at most ${MAX_FORMULA_DEPTH} deep`)
    if (++parts > MAX_FORMULA_NODES) throw refused(`a formula has at most ${MAX_FORMULA_NODES} parts`)
    if (word === 'dual') return DUAL_SIGNATURE
    const k = /^([1-9][0-9]?)of$/.exec(word)?.[1]
    if (word !== 'all' && word !== 'any' && k === undefined) return parseAtom(word, refused, ownerOf)
    const of = await list(depth)
    if (k === undefined) return { kind: word === 'all' ? 'allOf' : 'anyOf', of }
    if (Number(k) > of.length) throw refused(`${word} has ${of.length} ${of.length === 1 ? 'part' : 'parts'}`)
    return { kind: 'kOf', k: Number(k), of }
  }

  async function list(depth: number): Promise<Formula[]> {
    expectToken('(')
    const of = [await part(depth + 1)]
    while (tokens[at] === ',') {
      at++
      of.push(await part(depth + 1))
    }
    expectToken(')')
    return of
  }

  const whole = await part(1)
  const more = tokens[at]
  if (more !== undefined) throw refused(`nothing was expected after the formula, not ${quote(more)}`)
  return whole
}

/** A single atom, such as an adjudicator. @throws as {@link parseFormula}. */
export async function parseAdjudicator(text: string, field: string, ownerOf: (owner: string | undefined) => Id | Promise<Id>): Promise<Atom> {
  const formula = await parseFormula(text, field, ownerOf)
  if (formula.kind === 'signature' || formula.kind === 'bond') return formula
  throw new InputError(field, `${quote(text, 120)}: expected one atom`)
}

async function parseAtom(word: string, refused: (why: string) => InputError, ownerOf: (owner: string | undefined) => Id | Promise<Id>): Promise<Atom> {
  const family = FAMILIES.get(word)
  if (family !== undefined) return { kind: 'signature', family }
  const [kind, first, ...rest] = word.split(':')
  if (kind !== 'bond' || first === undefined || first === '') {
    throw refused(`${quote(word)} is no atom: ml-dsa-44, slh-dsa-sha2-128f, dual, bond:LABEL or bond:OWNER:LABEL`)
  }
  const label = rest.length === 0 ? first : rest.join(':')
  if (label === '' || new TextEncoder().encode(label).length > MAX_LABEL_BYTES) throw refused(`a bond's label has 1 to ${MAX_LABEL_BYTES} bytes`)
  return { kind: 'bond', owner: await ownerOf(rest.length === 0 ? undefined : first), label }
}

/** A formula as {@link parseFormula} takes it. Bonds of anyone but `issuer` with their owner. */
export function formulaText(formula: Formula, issuer: Id, names: Names = shortId): string {
  switch (formula.kind) {
    case 'signature':
      return formula.family.toLowerCase()
    case 'bond':
      return formula.owner === issuer ? `bond:${formula.label}` : `bond:${names(formula.owner)}:${formula.label}`
    default: {
      const connective = formula.kind === 'allOf' ? 'all' : formula.kind === 'anyOf' ? 'any' : `${formula.k}of`
      return `${connective}(${formula.of.map((part) => formulaText(part, issuer, names)).join(', ')})`
    }
  }
}
