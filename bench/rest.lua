-- wrk script: the same request again and again. Environment: BENCH_KEY a key, BENCH_PATH what is asked for, BENCH_BODY what is posted (none: GET).
wrk.path = os.getenv("BENCH_PATH")
wrk.body = os.getenv("BENCH_BODY")
wrk.method = wrk.body and "POST" or "GET"
wrk.headers["Authorization"] = "Bearer " .. (os.getenv("BENCH_KEY") or "")
wrk.headers["Content-Type"] = "application/json"

-- One line that bench/run reads.
function done(summary, latency, requests)
        local e = summary.errors

        io.write(string.format("RESULT %d %d %d %.0f %.0f %.0f %.0f\n", summary.requests, summary.duration,
                               e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50),
                               latency:percentile(99), latency:percentile(99.9), latency.max))
end
