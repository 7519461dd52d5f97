// Messages to the service manager that started the process, for `src/program/service-manager.ts`.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value NotifySend(const Arguments& arguments);

}  // namespace millrace
