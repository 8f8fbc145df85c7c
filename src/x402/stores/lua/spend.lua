-- Marks a nonce as spent, for as long as its record is kept.
-- KEYS[1]  the nonce's record
-- ARGV[1]  holder, hex
-- Returns  1, or 0 when the holder does not hold the nonce: then nothing changes.
local holder, spent = unpack(redis.call('HMGET', KEYS[1], 'holder', 'spent'))
if holder ~= ARGV[1] or spent ~= '0' then return 0 end
redis.call('HSET', KEYS[1], 'spent', '1')
return 1
