-- SPDX-License-Identifier: MIT
-- The mix of requests, for wrk: of ten, six ask for orders, three for the
-- catalogue, one for a computation.
local mix = { "/orders", "/orders", "/orders", "/orders", "/orders", "/orders",
              "/catalogue", "/catalogue", "/catalogue", "/risk" }
local count = 0

request = function()
   count = count + 1
   return wrk.format("GET", mix[count * 7 % #mix + 1])
end
