import { decodeSettlement, PAYMENT_RESPONSE, PAYMENT_SIGNATURE } from 'sion-x402/wire'

export const title = 'The same payment a second time'

/** Sends a copy of the payment that bought the first answer. */
export async function play(stage, cast) {
  const served = cast.served
  const response = await fetch(cast.url, { headers: { [PAYMENT_SIGNATURE]: cast.payment } })
  await response.body?.cancel()
  const header = response.headers.get(PAYMENT_RESPONSE)
  if (response.status !== 402 || header === null || cast.served !== served) {
    throw new Error(`a copy of a used payment got ${response.status}`)
  }
  const { errorReason, extensions } = decodeSettlement(header)
  stage.say(`GET ${cast.url} with the ${PAYMENT_SIGNATURE} header of before`)
  stage.good(`402 ${extensions.sion.code}: ${errorReason}`)
}
