// TLS and HTTP/2 on TCP sockets of Node.js, for `src/delivery/http/secure/`.
#pragma once

#include <node_api.h>

namespace millrace {

// Adds the functions that `tls.cc` describes.
void ExportTls(napi_env env, napi_value exports);

}  // namespace millrace
