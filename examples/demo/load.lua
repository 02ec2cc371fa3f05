-- SPDX-License-Identifier: MIT
-- load.lua - what wrk asks for: mostly the hot page, else one of a spread; and how it counts the answers.
-- Arguments after "--": percent of requests for the hot page, other pages, mean think time in ms, seed.

local hot_percent, pages, think_ms

function init(args)
    hot_percent, pages, think_ms = tonumber(args[1]), tonumber(args[2]), tonumber(args[3])
    math.randomseed(tonumber(args[4]))
end

function request()
    if math.random(100) <= hot_percent then
        return wrk.format("GET", "/page/hot")
    end
    return wrk.format("GET", "/page/p" .. math.random(pages))
end

function delay()
    return math.random(0, 2 * think_ms)
end

function done(summary)
    local e = summary.errors
    io.write("wrk-result ", summary.requests, " ", e.status, " ", e.connect, " ", e.read, " ", e.write, " ",
        e.timeout, "\n")
end
