-- wrk script: each request posts a message of its own (about 300 bytes of body) to POST /api/v2/messages/inbound.
-- Environment: BENCH_KEY the operator key, BENCH_QUERY a query ("?wait=10000"), BENCH_CHATS the number of conversations, BENCH_RUN a name for this run.
local chats = tonumber(os.getenv("BENCH_CHATS") or "1000")
local run = os.getenv("BENCH_RUN") or "run"
local text = string.rep("The quick brown fox jumps over the lazy dog. ", 4)
local head = '{"instanceId":"bench","chatId":"chat-%d","externalId":"' .. run .. '-%d",' ..
             '"sender":{"id":"user-%d","displayName":"Ann"},"text":"%d ' .. text .. '"}'
local n = 0

wrk.method = "POST"
wrk.path = "/api/v2/messages/inbound" .. (os.getenv("BENCH_QUERY") or "")
wrk.headers["Authorization"] = "Bearer " .. (os.getenv("BENCH_KEY") or "")
wrk.headers["Content-Type"] = "application/json"

function request()
        n = n + 1
        return wrk.format(nil, nil, nil, string.format(head, n % chats, n, n % chats, n))
end

dofile(os.getenv("BENCH_LUA") .. "/result.lua")
