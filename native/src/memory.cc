#include "memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace millrace {

// trimMemory(): gives pages that were freed back to the system, which the C library keeps
napi_value TrimMemory(const Arguments&) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return nullptr;
}

}  // namespace millrace
