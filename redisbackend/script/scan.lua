-- scan.lua reads a page of a registry, in the order in which semaphores were made.
--
-- KEYS  1 registry
-- ARGV  1 the number of the name before the first one   2 count
-- Reply {1, name, number, …}

local page = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local out = {1}
for i = 1, #page, 2 do out[#out + 1], out[#out + 2] = page[i], tonumber(page[i + 1]) end
return out
