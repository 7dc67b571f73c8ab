-- SPDX-License-Identifier: MIT
-- For wrk: of four requests, three ask for orders, one for the catalogue.
local count = 0

request = function()
   count = count + 1
   return wrk.format("GET", count % 4 == 0 and "/catalogue" or "/orders")
end
