-- Ends a holder's claim, also one that was spent and could not be served; the nonce stays bound to its payment.
-- KEYS[1]  the nonce's record
-- ARGV[1]  holder, hex
-- Returns  1, or 0 when the holder does not hold the nonce: then nothing changes.
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'holder', '', 'lease', '0', 'spent', '0')
return 1
