-- Extends a holder's lease.
-- KEYS[1]  the nonce's record
-- ARGV[1]  holder, hex
-- ARGV[2]  lease, milliseconds
-- Returns  1, or 0 when the holder does not hold the nonce: then nothing changes.
local holder, spent = unpack(redis.call('HMGET', KEYS[1], 'holder', 'spent'))
if holder ~= ARGV[1] or spent ~= '0' then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + tonumber(ARGV[2])))
return 1
