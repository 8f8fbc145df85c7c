/** 32 bytes of SHA-256: a leaf, a node or a root. Trees share these arrays: whoever gets one must not write to it. */
export type Hash = Uint8Array

export const HASH_LENGTH = 32

/** Whether `value`, from anywhere, is 32 bytes. */
export function isHash(value: unknown): value is Hash {
  return value instanceof Uint8Array && value.length === HASH_LENGTH
}

/** Not constant-time: everything in a tree is public. */
export function sameHash(a: Hash, b: Hash): boolean {
  if (a === b) return true
  for (let i = 0; i < HASH_LENGTH; i++) if (a[i] !== b[i]) return false
  return a.length === HASH_LENGTH && b.length === HASH_LENGTH
}
