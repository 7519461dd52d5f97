#include "memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace millrace {

// trimMemory(): returns freed pages to the system, which the C library would keep
napi_value TrimMemory(const Arguments&) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return nullptr;
}

}  // namespace millrace
