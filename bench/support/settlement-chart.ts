// The growth of settling, as an SVG that needs no explanation: payments grow to the right, what the ledger hashes upwards.

export interface SettlementPoint {
  readonly payments: number
  readonly streams: number
  readonly by: 'jump' | 'walk'
  readonly hashes: number
  readonly transactions: number
}

const WIDTH = 880
const HEIGHT = 520
const LEFT = 90
const RIGHT = 250
const TOP = 84
const BOTTOM = 64
const COLOURS = new Map([
  [1, '#1b6ca8'],
  [10, '#2a9d5c'],
  [100, '#c77d0a'],
  [1_000, '#b3364c'],
])

export function settlementChart(points: readonly SettlementPoint[]): string {
  const x = scale(2, 6, LEFT, WIDTH - RIGHT)
  const y = scale(1, 6, HEIGHT - BOTTOM, TOP)
  const parts: string[] = []
  for (let power = 2; power <= 6; power++) {
    const at = x(10 ** power)
    parts.push(line(at, TOP, at, HEIGHT - BOTTOM, '#e4e4e0'), text(at, HEIGHT - BOTTOM + 22, grouped(10 ** power), 'middle'))
  }
  for (let power = 1; power <= 6; power++) {
    const at = y(10 ** power)
    parts.push(line(LEFT, at, WIDTH - RIGHT, at, '#e4e4e0'), text(LEFT - 10, at + 4, grouped(10 ** power), 'end'))
  }
  parts.push(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, 'payments', 'middle', 'font-weight="600"'))
  for (const [streams, colour] of COLOURS) {
    for (const by of ['walk', 'jump'] as const) {
      const series = points.filter((point) => point.streams === streams && point.by === by).sort((a, b) => a.payments - b.payments)
      if (series.length === 0) continue
      const path = series.map(({ payments, hashes }) => `${round(x(payments))},${round(y(Math.max(10, hashes)))}`).join(' ')
      const style = by === 'jump' ? 'stroke-width="2.5"' : 'stroke-width="1.2" stroke-dasharray="3 4" opacity="0.7"'
      parts.push(`<polyline points="${path}" fill="none" stroke="${colour}" ${style}/>`)
      if (by === 'walk') continue
      for (const { payments, hashes } of series) parts.push(`<circle cx="${round(x(payments))}" cy="${round(y(Math.max(10, hashes)))}" r="3.5" fill="${colour}"/>`)
    }
  }
  parts.push(...legend(points))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="13" fill="#222">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="30" font-size="18" font-weight="600">Settling costs by streams, not by payments</text>
<text x="${LEFT}" y="54" fill="#555">Hashes that the ledger makes to settle everything, by the number of payments (both axes logarithmic)</text>
${parts.join('\n')}
</svg>
`
}

function legend(points: readonly SettlementPoint[]): string[] {
  const left = WIDTH - RIGHT + 24
  const parts = [text(left, TOP + 8, 'a million payments', 'start', 'font-weight="600"')]
  let at = TOP + 34
  for (const [streams, colour] of COLOURS) {
    const most = (by: 'jump' | 'walk'): SettlementPoint | undefined =>
      points.filter((point) => point.streams === streams && point.by === by).sort((a, b) => b.payments - a.payments)[0]
    const jump = most('jump')
    const walk = most('walk')
    if (jump === undefined) continue
    parts.push(
      `<circle cx="${left + 5}" cy="${at - 4}" r="5" fill="${colour}"/>`,
      text(left + 18, at, `${grouped(streams)} ${streams === 1 ? 'stream' : 'streams'}`, 'start', 'font-weight="600"'),
      text(left + 18, at + 18, `${counted(jump.transactions)}, ${grouped(jump.hashes)} hashes`, 'start'),
    )
    if (walk !== undefined) parts.push(text(left + 18, at + 35, `walking: ${counted(walk.transactions)}`, 'start', 'fill="#777"'))
    at += 66
  }
  parts.push(
    line(left, at + 4, left + 30, at + 4, '#444', 'stroke-width="2.5"'),
    text(left + 38, at + 8, 'by jump: a checkpoint’s path', 'start'),
    line(left, at + 26, left + 30, at + 26, '#444', 'stroke-width="1.2" stroke-dasharray="3 4"'),
    text(left + 38, at + 30, 'by walk: every step', 'start'),
  )
  return parts
}

function counted(transactions: number): string {
  return `${grouped(transactions)} ${transactions === 1 ? 'transaction' : 'transactions'}`
}

function scale(fromPower: number, toPower: number, from: number, to: number): (value: number) => number {
  return (value) => from + ((Math.log10(value) - fromPower) / (toPower - fromPower)) * (to - from)
}

function line(x1: number, y1: number, x2: number, y2: number, colour: string, more = ''): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${colour}" ${more}/>`
}

function text(x: number, y: number, content: string, anchor: string, more = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" ${more}>${content}</text>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function grouped(value: number): string {
  return value.toLocaleString('en-US')
}
