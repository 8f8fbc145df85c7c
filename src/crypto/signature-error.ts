export type SignatureErrorCode =
  | 'malformed_key'
  | 'malformed_message'
  | 'signature_failed'
  | 'signature_worker_failed'
  | 'signature_pool_closed'
  | 'invalid_option'

/**
 * A wrong call (a key, seed, message or option that cannot be right) or a broken dependency (a worker that stopped, a
 * pool that is closed). `code` is stable; `message` has lengths and limits in it, never a byte of a key. That a
 * signature does not verify is not an error: it is the value `false`.
 */
export class SignatureError extends Error {
  override readonly name = 'SignatureError'

  constructor(
    readonly code: SignatureErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
  }
}
