// A memory file without a name, from which the system sends without copying. Its bytes are written once and never changed: data that the
// system is still sending stays intact, even after the file is closed.
#pragma once

#include <cstddef>
#include <memory>

#include "napi_values.h"

namespace millrace {

class Image {
 public:
  Image();
  ~Image() { Close(); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // Below 0 once it is closed, and when the system had no room for it.
  int descriptor() const { return descriptor_; }
  size_t length() const { return length_; }
  bool Append(const Bytes& bytes);
  void Close();

 private:
  int descriptor_;
  size_t length_ = 0;
};

// JavaScript holds a pointer to this.
using SharedImage = std::shared_ptr<Image>;

}  // namespace millrace
