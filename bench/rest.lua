-- wrk script: the same request again and again. Environment: BENCH_KEY a key, BENCH_PATH what is asked for, BENCH_BODY what is posted (none: GET).
wrk.path = os.getenv("BENCH_PATH")
wrk.body = os.getenv("BENCH_BODY")
wrk.method = wrk.body and "POST" or "GET"
wrk.headers["Authorization"] = "Bearer " .. (os.getenv("BENCH_KEY") or "")
wrk.headers["Content-Type"] = "application/json"

dofile(os.getenv("BENCH_LUA") .. "/result.lua")
