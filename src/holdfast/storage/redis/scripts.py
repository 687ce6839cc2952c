"""The Lua scripts. A script runs alone, so a check and the write that follows it are one step.

A run has two keys: `head`, a hash (epoch, last, sealed, pruned), and a stream whose ids are the events' numbers: Redis
itself refuses one that is not greater than the last.
"""

from typing import Final

ACCEPTED, FENCED, SEALED, CONFLICT = range(4)

APPEND: Final = """
local answers, at = {}, 2
for i, item in ipairs(cjson.decode(ARGV[1])) do
    local head, stream, epoch, first, count, seals = unpack(item)
    local found = redis.call('HMGET', head, 'epoch', 'last', 'sealed', 'pruned')
    local now, last, verdict = tonumber(found[1] or '0'), tonumber(found[2] or '0'), 0
    if epoch < now then
        verdict = 1
    elseif found[3] == '1' or found[4] == '1' then
        verdict = 2
    elseif first ~= last + 1 then
        verdict = 3
    else
        for n = 0, count - 1 do
            redis.call('XADD', stream, string.format('%.0f-0', first + n), 'f', ARGV[at + n])
        end
        redis.call(
            'HSET', head, 'epoch', string.format('%.0f', epoch), 'last', string.format('%.0f', first + count - 1),
            'sealed', seals
        )
    end
    answers[i] = {verdict, now, last}
    at = at + count
end
return answers
"""
"""ARGV: JSON with, for each run, the keys of head and stream, epoch, first seq, count, and whether it seals; then all
frames. One JSON value instead of many arguments: the client takes longer to encode those than Redis for the script."""

FENCE: Final = """
local answers = {}
for n = 1, #ARGV do
    local head, stream = KEYS[2 * n - 1], KEYS[2 * n]
    local found = redis.call('HMGET', head, 'epoch', 'last', 'sealed', 'pruned')
    if tonumber(found[1] or '0') < tonumber(ARGV[n]) then
        redis.call('HSET', head, 'epoch', ARGV[n])
    end
    if found[3] ~= '1' and found[4] ~= '1' then
        local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
        local last = newest and string.match(newest[1], '^%d+') or '0'
        if last ~= (found[2] or '0') then
            redis.call('HSET', head, 'last', last)
        end
    end
    answers[n] = redis.call('HMGET', head, 'epoch', 'last', 'sealed', 'pruned')
end
return answers
"""
"""KEYS: head and stream of each run. ARGV: epochs. If Redis lost one of the two keys, the journal continues from the
other: otherwise nobody could ever seal the run."""

SETTLED: Final = """
for i = 1, #KEYS, 2 do
    if redis.call('HGET', KEYS[i], 'sealed') == '1' then
        redis.call('PEXPIRE', KEYS[i + 1], ARGV[1])
    end
end
"""
"""KEYS: head and stream of each run. ARGV: milliseconds for which the events are kept. The head remains, so that a read
finds the journal pruned."""

PURGE: Final = """
for i = 1, #KEYS, 2 do
    redis.call('DEL', KEYS[i + 1])
    redis.call('HSET', KEYS[i], 'pruned', '1')
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
end
"""
"""KEYS: head and stream of each run. ARGV: milliseconds for which the mark is kept."""
