-- fence_floor: keep the fence counter ahead.
-- include clock
-- include floor
return {now, floor}
