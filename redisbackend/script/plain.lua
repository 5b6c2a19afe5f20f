-- plain.lua begins the step that serves the requests on one semaphore that share a call; serve.lua goes on
-- where it stops. Step says what comes before what. Here are the plain cases, without any function: one
-- permit, nobody waits, nothing was done by hand. The first request that is not plain is left to
-- serve.lua, with all that follow.
--
-- KEYS, ARGV 1 and 2: see open.lua
-- ARGV 3 <ddddddddBd head, timeouts, waited, default lease, default idle, most semaphores, ops, candidates,
--                    behind, caught
--      4 how to publish: I2c0 each of command, channel, name
--      5 … one for each op, then one for each candidate:
--        acquire   <BBdddI2c0I2c0I2c0  1, flags, permits, lease, capacity, holder, ticket, label
--        release   <BBdI2c0I2c0        2, flags, token, holder, ticket
--        renew     <BBdI2c0d           3, flags, token, holder, lease
--        check     <BBdI2c0            4, flags, token, holder
--        give back <BBdI2c0I2c0        5, flags, token, holder, ticket
--        candidate <ddddI2c0I2c0I2c0   permits, lease, waited, arrival, holder, ticket, label
-- Reply {1, now, capacity or -1, latest token, ms to the next end or -1, free, marks, served, results…},
-- marks being 1 where there is more to do at once, plus 2 where somebody waits and others work by hand,
-- plus 4 for each lease that was found to have ended,
-- a result for each op and each of the first candidates that is dealt with:
--   0 no · 1 yes · 2 grant, 3 replayed: token, lease left, slots · 4 joins · 5 number: n · refusals: a, b

local head, new_timeouts, new_waits, lease0, idle0, most, n_ops, n_candidates, behind, caught = take_apart('<ddddddddBd', ARGV[3])
local out, n = {1, now, 0, 0, 0, 0, 0, 0}, 8
local at, final = 5, 4 + n_ops -- the next op, and the last one
local released = {}            -- the tickets of releases that took effect
local byte, format = string.byte, string.format -- a number as an argument is written as %.17g, which is slow
local changes = new_timeouts > 0

-- Those that follow each other, each of another holder, are served together: what there is of them is read
-- at once, then each is decided by itself, then all is written at once.
local plain = cap and not again and n_candidates == 0 and head == 0 and caught == 0 and lost == 0 and s_quarantine == 0
  and (not meta[4] or meta[4] == '') and (s_idle == 0 or card > 0 or now <= used + s_idle)
while plain and at <= final do
  local ops, holders, known = {}, {}, {}
  for i = at, final do
    local arg = ARGV[i]
    local kind, flags = byte(arg, 1, 2)
    local op
    if kind == 1 then
      local _, _, permits, lease, _, holder, ticket, label = take_apart('<BBdddI2c0I2c0I2c0', arg)
      if permits ~= 1 or flags >= 4 or lease < 0 or s_max > 0 and lease > s_max then break end
      op = {kind, holder, lease, ticket, label}
    elseif flags == 0 and kind <= 4 then
      local _, _, given, holder, pos = take_apart('<BBdI2c0', arg)
      op = {kind, holder, given, pos}
    else
      break
    end
    local holder = op[2]
    if known[holder] or byte(holder) == 0 then break end
    known[holder], changes = true, changes or kind ~= 4
    ops[#ops + 1], holders[#holders + 1] = op, holder
  end
  if #ops == 0 then break end

  -- A single acquire need not ask for the score: ZADD NX says whether there is such a member.
  local alone = #ops == 1 and ops[1][1] == 1
  local records, scores = call('HMGET', G, unpack(holders)), not alone and call('ZMSCORE', Z, unpack(holders))
  local there, held, done, m, freed, taken = list + spare, card, 0, n, 0, 0
  local members, fields, grants, gone, places = {}, {}, {} -- to be written, for ZADD, HSET and ZREM
  for i, op in ipairs(ops) do
    local kind, holder = op[1], op[2]
    local record, score = records[i], not alone and scores[i]
    if kind == 1 then
      if record or score or there < 1 or held >= cap or ours + taken - freed >= cap then break end
      local lease = op[3]
      if lease == 0 then lease = s_lease > 0 and s_lease or lease0 end
      if s_max > 0 and lease > s_max then lease = s_max end
      if s_hold > 0 and lease > s_hold then lease = s_hold end
      members[#members + 1], members[#members + 2] = format('%d', now + lease), holder
      taken, there, held = taken + 1, there - 1, held + 1
      grants[taken], op[6], op[7] = op, lease, m
      out[m + 1], out[m + 3] = GRANTED, lease
      m = m + 4
    else
      if not record or not score then break end
      local written, token, ends, length, granted, permits, how, ticket, place, label = take_apart(RECORD, record)
      if written ~= tonumber(score) or permits ~= 1 or ends ~= written or now > ends then break end
      if op[3] ~= 0 and op[3] ~= token then
        if kind == 3 then break end
        m = m + 1
        out[m] = NO
      elseif kind == 2 then
        freed, there, held = freed + 1, there + 1, held - 1
        gone, places = gone or {}, places or {}
        gone[freed], places[freed] = holder, tonumber(place)
        held_ms = held_ms + now - granted
        released[#released + 1] = take_apart('<I2c0', ARGV[at + i - 1], op[4])
        m = m + 1
        out[m] = YES
      elseif kind == 3 then
        local lease = take_apart('<d', ARGV[at + i - 1], op[4])
        if lease < 0 or s_max > 0 and lease > s_max or length == NEVER then break end
        if lease == 0 then lease = length end
        if s_max > 0 and lease > s_max then lease = s_max end
        ends = now + lease
        if s_hold > 0 and ends > granted + s_hold then ends = granted + s_hold end
        if ends <= now then break end
        members[#members + 1], members[#members + 2] = format('%d', ends), holder
        fields[#fields + 1], fields[#fields + 2] = holder,
          pack(RECORD, ends, token, ends, lease, granted, 1, how % RENEWAL, 0, '', #place, place, #label, label)
        renewals = renewals + 1
        out[m + 1], out[m + 2] = NUMBER, ends - now
        m = m + 2
      else
        m = m + 1
        out[m] = op[3] == token and YES or NO
      end
    end
    done = i
  end
  if done == 0 then break end

  if freed > 0 then
    if freed > 1 then table.sort(places, function(a, b) return a > b end) end
    local keep, kept = {}
    for _, place in ipairs(places) do
      if place == mark - 1 then mark = place else keep[#keep + 1], keep[#keep + 2] = place, place end
    end
    -- First what may fail: because the key is of another type, or for want of memory.
    if #keep > 0 then kept = redis.pcall('ZADD', S, unpack(keep)) end
    if type(kept) == 'table' and not string.find(kept.err, 'OOM', 1, true) then return kept end
    call('ZREM', Z, unpack(gone))
    call('HDEL', G, unpack(gone))
    if #keep > 0 then gaps = gaps + (type(kept) == 'table' and call('ZADD', S, unpack(keep)) or kept) end
    releases = releases + freed
  end
  if taken > 0 and gaps > 0 then call('ZCARD', S) end -- an error where it is of another type
  if #members > 0 then
    local written
    if alone then written = redis.pcall('ZADD', Z, 'NX', unpack(members)) else written = redis.pcall('ZADD', Z, unpack(members)) end
    -- Without memory, or where the single acquire is no new holder, nothing is written: serve.lua decides.
    if type(written) == 'table' or alone and written == 0 then
      renewals = renewals - #fields / 2
      break
    end
  end
  if taken > 0 then
    local popped
    if gaps > 0 then
      popped = call('ZPOPMIN', S, taken)
      gaps = #popped < 2 * taken and 0 or gaps - taken
    end
    last = math.max(last, seen, micros - 1)
    for i, op in ipairs(grants) do
      local place = popped and popped[2 * i - 1]
      if not place then
        place = format('%d', mark)
        mark = mark + 1
      end
      last = last + 1
      local ends, ticket, label = now + op[6], op[4], op[5]
      fields[#fields + 1], fields[#fields + 2] = op[2],
        pack(RECORD, ends, last, ends, op[6], now, 1, 0, #ticket, ticket, #place, place, #label, label)
      out[op[7] + 2], out[op[7] + 4] = last, place
    end
    immediate = immediate + taken
  end
  if #fields > 0 then call('HSET', G, unpack(fields)) end
  spare = spare + freed - taken
  if spare < 0 then
    call('RPOP', L, -spare)
    list, spare = list + spare, 0
  end
  card, ours, n, at, used = card + taken - freed, ours + taken - freed, m, at + done, now
  if done < #ops then break end
end
if at > 5 and at > final then
  if spare > 0 then
    local back = math.min(spare, cap - list - card)
    list = list + math.max(back, 0)
    if back == 1 then
      call('RPUSH', L, 'p')
    elseif back > 0 then
      local all = {}
      for i = 1, back do all[i] = 'p' end
      call('RPUSH', L, unpack(all))
    end
  end
  if list > 0 then streak = 0 end
  if card == 0 and mark > 0 and ours == 0 then
    if gaps > 0 then call('DEL', S) end
    mark, gaps = 0, 0
  end
  timeouts, wait_ms = timeouts + new_timeouts, wait_ms + new_waits
  -- Out of memory, only counters and a serial number are lost: nothing that takes memory was done.
  local stored = not changes or redis.pcall('HSET', M, 'state', pack(STATE, last, mark, gaps, streak, used, paroled,
    extras, ours, swept, lost, immediate, late, refused, timeouts, wait_ms, releases, renewals, expirations, reconciled,
    held_ms), server, pack('<dd', serial, now) .. table.concat(released, ' ') .. ' ')
  if type(stored) == 'table' and not string.find(stored.err, 'OOM', 1, true) then return stored end
  out[3], out[4], out[5] = cap, last, -1
  return out
end
