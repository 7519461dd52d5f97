// TCP ports that are open before a thread serves them, for `src/delivery/pool/activation-port.ts`.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value DoorOpen(const Arguments& arguments);
napi_value DoorClose(const Arguments& arguments);
napi_value DoorShare(const Arguments& arguments);

}  // namespace millrace
