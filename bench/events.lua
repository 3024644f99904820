-- wrk script: each request posts the event of a coding session's tool call (about 300 bytes of body) to POST /api/webhook/event.
-- Environment: BENCH_KEY the key, BENCH_RUN a name for this run, BENCH_SESSIONS the number of sessions, BENCH_LIST how many events a request
-- has (default: one, not in a list).
local sessions = tonumber(os.getenv("BENCH_SESSIONS") or "50")
local list = tonumber(os.getenv("BENCH_LIST") or "0")
local run = os.getenv("BENCH_RUN") or "run"
local event = '{"session_id":"' .. run .. '-%d","event_type":"tool_call","tool_name":"bash","content":"{\\"command\\":\\"make -j2 test %d\\"}",' ..
              '"metadata":{"cwd":"/home/dev/project","toolCallId":"call-%d","destructive":false},"timestamp":"2026-01-01T12:00:00.000Z"}'
local n = 0

wrk.method = "POST"
wrk.path = "/api/webhook/event"
wrk.headers["Authorization"] = "Bearer " .. (os.getenv("BENCH_KEY") or "")
wrk.headers["Content-Type"] = "application/json"

local function one()
        n = n + 1
        return string.format(event, n % sessions, n, n)
end

function request()
        if list == 0 then
                return wrk.format(nil, nil, nil, one())
        end
        local events = {}
        for i = 1, list do
                events[i] = one()
        end
        return wrk.format(nil, nil, nil, "[" .. table.concat(events, ",") .. "]")
end

dofile(os.getenv("BENCH_LUA") .. "/result.lua")
