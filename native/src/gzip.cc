// gzip (RFC 1952) by the zlib that Node.js contains. `node:zlib` makes a stream object for each text, which costs more than
// compressing a playlist; here a thread has one compressor for all its texts.
#include "gzip.h"

#include <zlib.h>

// Missing where Node.js was built with another zlib: then `GzipText` writes nothing.
#pragma weak deflateInit2_
#pragma weak deflateReset
#pragma weak deflate
#pragma weak deflateEnd

namespace millrace {
namespace {

// Longer texts are rare: `node:zlib` compresses them.
constexpr size_t kMaxText = 64 * 1024;
// Lines of a playlist resemble the previous ones: a window of 1 KiB compresses as well as 32 KiB. 16 stands for a gzip header.
constexpr int kWindowBits = 10 + 16;
constexpr int kMemoryLevel = 4;

class Compressor {
 public:
  ~Compressor() {
    if (ready_) deflateEnd(&stream_);
  }

  // The number of bytes written; 0: no compressor, or no room.
  size_t Compress(Bytes text, Bytes into) {
    if (!Prepare()) return 0;
    stream_.next_in = text.data;
    stream_.avail_in = static_cast<uInt>(text.length);
    stream_.next_out = into.data;
    stream_.avail_out = static_cast<uInt>(into.length);
    return deflate(&stream_, Z_FINISH) == Z_STREAM_END ? into.length - stream_.avail_out : 0;
  }

 private:
  bool Prepare() {
    if (ready_) return deflateReset(&stream_) == Z_OK;
    if (deflateInit2_ == nullptr || deflateReset == nullptr || deflate == nullptr || deflateEnd == nullptr) return false;
    ready_ = deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, kWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK;
    return ready_;
  }

  z_stream stream_ = {};
  bool ready_ = false;
};

}  // namespace

// gzipText(text, into) → number of bytes written, 0 when the text or its compressed form is too long
napi_value GzipText(const Arguments& arguments) {
  thread_local char text[kMaxText];
  thread_local Compressor compressor;
  napi_env env = arguments.env();
  size_t length = 0;
  if (arguments.value(0) == nullptr || napi_get_value_string_utf8(env, arguments.value(0), text, sizeof text, &length) != napi_ok)
    throw BadArgument{"a string is expected"};
  const Bytes into = BytesOf(env, arguments.value(1));
  // A truncated text ends up to three bytes earlier: a character is not split.
  if (length + 4 >= sizeof text) return MakeNumber(env, 0);
  return MakeNumber(env, static_cast<double>(compressor.Compress({reinterpret_cast<uint8_t*>(text), length}, into)));
}

}  // namespace millrace
