-- SPDX-License-Identifier: MIT
-- cookie.lua - the same page again and again; says how many requests, how many of them wrong, in how many microseconds.

function done(summary)
    io.write("wrk-result ", summary.requests, " ", summary.errors.status, " ", summary.duration, "\n")
end
