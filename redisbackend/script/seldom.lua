-- seldom.lua has what is done with the books when leases have ended, when something was done by hand, or
-- when a semaphore is made or removed. Its functions are made when the first one of them is called.

setmetatable(books, {__index = function(_, name)
  setmetatable(books, nil)

  -- finish ends the lease of a grant that has run out: its permits fall free, or go into quarantine.
  function books.finish(g)
    if g.flags < PAROLE then
      books.expirations = books.expirations + 1
      books.held_ms = books.held_ms + math.max(0, g.ends - g.granted)
      books.used = math.max(books.used, g.ends)
    end
    if now > g.score then return books.drop(g) end
    call('ZREM', Z, unpack(books.members(g)))
    call('HDEL', G, g.member)
    call('ZREM', E, g.member)
    books.extras = books.extras - g.permits + 1
    books.paroled = books.paroled + g.permits
    g.member, g.flags, g.ticket, g.label = MARK .. 'q' .. string.format('%.0f', g.token), PAROLE, '', ''
    books.write(g)
  end

  -- bury clears away a record whose member was taken out, or changed, by hand. If the first member is
  -- there, it is a raw holder's now.
  function books.bury(g, score)
    local all = books.members(g)
    if score then table.remove(all, 1) end
    local gone = #all > 0 and call('ZREM', Z, unpack(all)) or 0
    books.card, books.spare = books.card - gone, books.spare + gone
    call('HDEL', G, g.member)
    call('ZREM', E, g.member)
    books.vacate({g.slots})
    books.ours = books.ours - g.permits
    if g.flags >= PAROLE then
      books.paroled = books.paroled - g.permits
    else
      books.extras = books.extras - g.permits + 1
    end
  end

  -- restore puts the members of a grant back that were lost with the ZSET, if it is live and the permits
  -- were not given to others.
  function books.restore(g)
    if books.lost == 0 or now > g.ends or books.list + books.spare + books.card + g.permits > books.cap then return false end
    books.rewrite(g)
    books.card = books.card + g.permits
    return true
  end

  -- sweep clears away what clients who work by hand leave behind in what is ours: records whose members they
  -- took out; and it puts members back that were lost with the ZSET. It looks at a portion of the records,
  -- from where the last one ended.
  function books.sweep()
    if books.ours == 0 then return end
    local page = call('HSCAN', G, string.format('%.0f', books.swept), 'COUNT', PORTION)
    books.swept = tonumber(page[1])
    for i = 1, #page[2], 2 do
      local g = books.load(page[2][i], page[2][i + 1])
      local score = call('ZSCORE', Z, g.member)
      score = score and tonumber(score)
      if score ~= g.score and (score or not books.restore(g)) then
        if now > g.ends and g.flags < PAROLE then
          books.expirations = books.expirations + 1
          books.held_ms = books.held_ms + math.max(0, g.ends - g.granted)
        end
        books.bury(g, score)
      end
    end
    if books.swept == 0 then books.lost = 0 end
    books.more = books.more or books.lost > 0
  end

  -- expire takes out members that are due, at most a portion, and says how many permits fell free.
  function books.expire()
    local due = call('ZRANGEBYSCORE', Z, '-inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, PORTION)
    if #due == 0 then
      books.more = false
      return 0
    end
    books.more = #due == 2 * PORTION
    local before, names = books.card, {}
    for i = 1, #due, 2 do names[#names + 1] = due[i] end
    local records = call('HMGET', G, unpack(names))
    local gone, dead, places = {}, {}, {}
    for i, name in ipairs(names) do
      local kind = string.sub(name, 1, #MARK) == MARK and string.sub(name, #MARK + 1, #MARK + 1)
      local g = records[i] and books.load(name, records[i])
      if kind == '+' then
        local first = string.match(name, '^%d+:(.*)$', #MARK + 2)
        local record = first and call('HGET', G, first)
        g = record and books.load(first, record)
        if g and call('ZSCORE', Z, first) and g.score == tonumber(due[2 * i]) and i <= #names then
          books.finish(g)
        else
          gone[#gone + 1] = name
        end
      elseif g and g.permits > 1 and g.score == tonumber(due[2 * i]) then
        if call('ZSCORE', Z, name) then books.finish(g) end
      else
        gone[#gone + 1] = name
        if kind ~= '@' and kind ~= 'q' then books.expirations = books.expirations + 1 end
        if g then
          dead[#dead + 1], places[#places + 1] = name, g.slots
          books.ours = books.ours - g.permits
          if g.flags >= PAROLE then
            books.paroled = books.paroled - g.permits
          else
            books.extras = books.extras - g.permits + 1
            books.held_ms = books.held_ms + math.max(0, g.ends - g.granted)
            books.used = math.max(books.used, g.ends)
            if g.score ~= g.ends then call('ZREM', E, name) end
          end
        end
      end
    end
    if #gone > 0 then
      local n = call('ZREM', Z, unpack(gone))
      books.card, books.spare = books.card - n, books.spare + n
    end
    if #dead > 0 then call('HDEL', G, unpack(dead)) end
    books.vacate(places)
    return before - books.card
  end

  -- parole sends grants into quarantine whose leases have ended, at most a portion.
  function books.parole()
    local due = call('ZRANGEBYSCORE', E, '-inf', '(' .. now, 'LIMIT', 0, PORTION)
    books.more = books.more or #due == PORTION
    for _, first in ipairs(due) do
      books.find(first)
      call('ZREM', E, first)
    end
  end

  -- trim takes free permits out of the List that exceed the capacity.
  function books.trim()
    local surplus = books.list - math.max(0, books.cap - books.card)
    if surplus <= 0 then return end
    call('LTRIM', L, surplus, -1)
    books.list = books.list - surplus
  end

  -- enrol names the semaphore in the registry. False: there are as many as there may be, so many.
  function books.enrol(name, most)
    if call('ZSCORE', R, name) then return true end
    local count = call('ZCARD', R)
    if most > 0 and count >= most then return false, count end
    local latest = call('ZREVRANGE', R, 0, 0, 'WITHSCORES')
    return books.fallible('ZADD', R, (tonumber(latest[2]) or 0) + 1, name)
  end

  -- known raises an error where keys that are ours alone are of another type than they should be.
  function books.known()
    call('HLEN', G)
    call('ZCARD', S)
    call('ZCARD', E)
  end

  -- make makes a semaphore. Keys that are there already are taken over as they are. It returns a code and
  -- a number where that is not possible.
  function books.make(name, capacity, most, settings)
    if capacity > MOST or capacity < 0 then return CAPACITY, capacity end
    books.known()
    local enrolled, count = books.enrol(name, most)
    if not enrolled then
      if count then return SEMAPHORES, count, most end
      return NO_MEMORY, 0
    end
    books.last = math.max(books.last, tonumber(call('HGET', M, 'last') or 0))
    call('PERSIST', M)
    call('HDEL', M, 'last', 'deleted', 'line', 'state', 'settings', 'reconciled')
    call('HSET', M, 'capacity', capacity)
    call('DEL', G, S, E)
    if settings then call('HSET', M, 'settings', settings) end
    books.cap, books.used = capacity, now
    if books.list == 0 and books.card == 0 then books.put(books.cap) end
  end

  -- remove forgets the semaphore. Its latest token, which request removed it, and the latest calls of all
  -- servers are kept for a week.
  function books.remove(name, ticket)
    call('UNLINK', L, Z, G, S, E)
    call('ZREM', R, name)
    for _, field in ipairs(call('HKEYS', M)) do
      if string.byte(field) ~= 64 then call('HDEL', M, field) end
    end
    call('HSET', M, 'last', string.format('%.0f', books.last), 'deleted', ticket, server, pack('<dd', serial, now) .. books.notes)
    call('PEXPIRE', M, 604800000)
    books.cap, books.list, books.card, books.spare = nil, 0, 0, 0
  end

  -- announce tells a server, or all with '*', of something about the semaphore.
  function books.announce(kind, whom)
    local command, channel, name = take_apart('<I2c0I2c0I2c0', ARGV[4])
    call(command, channel, kind .. ' ' .. whom .. ' ' .. server .. ' ' .. string.format('%.0f', books.last) .. ' ' .. name)
  end

  return books[name]
end})
