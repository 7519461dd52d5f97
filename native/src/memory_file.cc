#include "memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

namespace millrace {

MemoryFile::MemoryFile() : descriptor_(memfd_create("millrace", MFD_CLOEXEC)) {}

bool MemoryFile::Append(const Bytes& bytes) {
  if (write(descriptor_, bytes.data, bytes.length) != static_cast<ssize_t>(bytes.length)) return false;
  length_ += bytes.length;
  return true;
}

void MemoryFile::Close() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace millrace
