-- Takes a nonce for one payment, or says who has it. One atomic step; the holder may take it again.
-- KEYS[1]  the nonce's record
-- ARGV[1]  format of records this program writes
-- ARGV[2]  payment: digest of the ledger transaction, hex
-- ARGV[3]  holder: names this claim, hex
-- ARGV[4]  lease, milliseconds
-- ARGV[5]  the record may be forgotten after this, seconds since the Unix epoch
-- Returns  'claimed' | 'held' | 'bound' | 'spent', or 'format:<n>' for a record of a newer format.
-- Any answer but 'claimed' leaves the record untouched.
local format, payment, holder, spent, lease =
  unpack(redis.call('HMGET', KEYS[1], 'format', 'payment', 'holder', 'spent', 'lease'))
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if format then
  if tonumber(format) > tonumber(ARGV[1]) then return 'format:' .. format end
  if payment ~= ARGV[2] then return 'bound' end
  if spent == '1' then return 'spent' end
  if tonumber(lease) > now and holder ~= ARGV[3] then return 'held' end
end
redis.call('HSET', KEYS[1], 'format', ARGV[1], 'payment', ARGV[2], 'holder', ARGV[3], 'spent', '0',
  'lease', string.format('%.0f', now + tonumber(ARGV[4])))
redis.call('EXPIREAT', KEYS[1], ARGV[5])
return 'claimed'
