// What the C library holds of the process's memory, for `src/program/serve.ts`.
#pragma once

#include "napi-values.h"

namespace millrace {

napi_value TrimMemory(const Arguments& arguments);

}  // namespace millrace
