// Makes functions over `Arguments` callable from JavaScript.
#pragma once

#include <exception>

#include "napi_values.h"

namespace millrace {

template <napi_value (*Function)(const Arguments&)>
napi_value Call(napi_env env, napi_callback_info info) {
  try {
    const Arguments arguments(env, info);
    return Function(arguments);
  } catch (const BadArgument& bad) {
    napi_throw_type_error(env, "FANOUT_ARGUMENT", bad.message);
  } catch (const std::exception& failure) {
    napi_throw_error(env, "FANOUT_FAILURE", failure.what());
  }
  return nullptr;
}

template <napi_value (*Function)(const Arguments&)>
void Export(napi_env env, napi_value exports, const char* name) {
  napi_value function = nullptr;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, Call<Function>, nullptr, &function);
  Set(env, exports, name, function);
}

}  // namespace millrace
