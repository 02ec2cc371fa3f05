-- fence_floor: keep the fence counter ahead.
-- include begin
-- include floor
return {now, floor}
