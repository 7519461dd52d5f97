// Conversions between JavaScript values and C++.
#pragma once

#include <node_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

// Thrown for a wrong argument; caught at the call from JavaScript.
struct BadArgument {
  const char* message;
};

struct Bytes {
  uint8_t* data = nullptr;
  size_t length = 0;
};

// The bytes of a Uint8Array, in place.
inline Bytes BytesOf(napi_env env, napi_value array) {
  Bytes bytes;
  void* data = nullptr;
  napi_typedarray_type type = napi_int8_array;
  napi_value buffer = nullptr;
  size_t offset = 0;
  if (array == nullptr || napi_get_typedarray_info(env, array, &type, &bytes.length, &data, &buffer, &offset) != napi_ok ||
      type != napi_uint8_array)
    throw BadArgument{"a Uint8Array is expected"};
  bytes.data = static_cast<uint8_t*>(data);
  return bytes;
}

class Arguments {
 public:
  Arguments(napi_env env, napi_callback_info info) : env_(env) { napi_get_cb_info(env, info, &count_, values_, nullptr, nullptr); }

  napi_env env() const { return env_; }
  napi_value value(size_t n) const { return n < count_ ? values_[n] : nullptr; }

  template <typename T>
  T* External(size_t n) const {
    void* data = nullptr;
    if (value(n) == nullptr || napi_get_value_external(env_, value(n), &data) != napi_ok || data == nullptr)
      throw BadArgument{"a handle is expected"};
    return static_cast<T*>(data);
  }
  double Number(size_t n) const {
    double number = 0;
    if (value(n) == nullptr || napi_get_value_double(env_, value(n), &number) != napi_ok) throw BadArgument{"a number is expected"};
    return number;
  }
  uint32_t Unsigned(size_t n) const { return static_cast<uint32_t>(static_cast<int64_t>(Number(n))); }
  bool Boolean(size_t n) const {
    bool truth = false;
    if (value(n) == nullptr || napi_get_value_bool(env_, value(n), &truth) != napi_ok) throw BadArgument{"a boolean is expected"};
    return truth;
  }
  std::string Text(size_t n) const {
    size_t length = 0;
    if (value(n) == nullptr || napi_get_value_string_utf8(env_, value(n), nullptr, 0, &length) != napi_ok)
      throw BadArgument{"a string is expected"};
    std::string text(length, '\0');
    napi_get_value_string_utf8(env_, value(n), text.data(), length + 1, &length);
    return text;
  }
  Bytes Buffer(size_t n) const { return BytesOf(env_, value(n)); }
  // A copy of a Uint32Array.
  std::vector<uint32_t> Words(size_t n) const {
    size_t length = 0;
    const uint32_t* words = WordsInPlace(n, &length);
    return std::vector<uint32_t>(words, words + length);
  }
  // A writable Uint32Array.
  uint32_t* WordsInPlace(size_t n, size_t* length) const {
    void* data = nullptr;
    napi_typedarray_type type = napi_int8_array;
    napi_value buffer = nullptr;
    size_t offset = 0;
    if (value(n) == nullptr || napi_get_typedarray_info(env_, value(n), &type, length, &data, &buffer, &offset) != napi_ok ||
        type != napi_uint32_array)
      throw BadArgument{"a Uint32Array is expected"};
    return static_cast<uint32_t*>(data);
  }

 private:
  static constexpr size_t kMaxArguments = 12;
  napi_env env_;
  size_t count_ = kMaxArguments;
  napi_value values_[kMaxArguments];
};

inline napi_value MakeNumber(napi_env env, double number) {
  napi_value value = nullptr;
  napi_create_double(env, number, &value);
  return value;
}
inline napi_value MakeText(napi_env env, const std::string& text) {
  napi_value value = nullptr;
  napi_create_string_utf8(env, text.data(), text.size(), &value);
  return value;
}
inline napi_value MakeBuffer(napi_env env, const void* data, size_t length) {
  napi_value value = nullptr;
  napi_create_buffer_copy(env, length, data, nullptr, &value);
  return value;
}
inline void Set(napi_env env, napi_value object, const char* name, napi_value value) { napi_set_named_property(env, object, name, value); }
inline void Set(napi_env env, napi_value object, const char* name, double number) { Set(env, object, name, MakeNumber(env, number)); }

}  // namespace millrace
