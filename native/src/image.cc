#include "image.h"

#include <sys/mman.h>
#include <unistd.h>

namespace millrace {

Image::Image() : descriptor_(memfd_create("millrace", MFD_CLOEXEC)) {}

bool Image::Append(const Bytes& bytes) {
  if (write(descriptor_, bytes.data, bytes.length) != static_cast<ssize_t>(bytes.length)) return false;
  length_ += bytes.length;
  return true;
}

void Image::Close() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace millrace
