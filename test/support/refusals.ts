import { expect } from 'vitest'
import { LightClientError, type LightClientCode } from '../../src/light/index.js'

/** That `act` throws, or rejects with, a LightClientError of `code`. */
export async function refuses(code: LightClientCode, act: () => unknown): Promise<LightClientError> {
  let outcome: unknown
  try {
    outcome = await act()
  } catch (error) {
    if (!(error instanceof LightClientError)) throw error
    expect(error.code).toBe(code)
    return error
  }
  throw new Error(`accepted instead of refused with ${code}: ${String(outcome)}`)
}
