// A memory file without a name, from which the system sends without copying. Its bytes never change after they were written, so data in
// flight stays intact even after the file is closed.
#pragma once

#include <cstddef>
#include <memory>

#include "napi_values.h"

namespace millrace {

class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile() { Close(); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Negative after `Close`, or when the system had no room for the file.
  int descriptor() const { return descriptor_; }
  size_t length() const { return length_; }
  bool Append(const Bytes& bytes);
  void Close();

 private:
  int descriptor_;
  size_t length_ = 0;
};

// JavaScript holds a pointer to this.
using SharedMemoryFile = std::shared_ptr<MemoryFile>;

}  // namespace millrace
