// Compression of playlists, for `src/delivery/thread/text-coder.ts`.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value GzipText(const Arguments& arguments);

}  // namespace millrace
