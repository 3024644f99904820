-- Part of the wrk scripts: one line that bench/run reads.
function done(summary, latency, requests)
        local e = summary.errors

        io.write(string.format("RESULT %d %d %d %.0f %.0f %.0f %.0f\n", summary.requests, summary.duration,
                               e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50),
                               latency:percentile(99), latency:percentile(99.9), latency.max))
end
