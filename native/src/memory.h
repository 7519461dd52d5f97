// Memory held by the C library, for `src/program/serve.ts`.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value TrimMemory(const Arguments& arguments);

}  // namespace millrace
