// Sending on TCP sockets of Node.js: `src/protocols/http/direct-sender.ts` gives the functions types.
#pragma once

#include <node_api.h>

namespace millrace {

void ExportTcpSend(napi_env env, napi_value exports);

}  // namespace millrace
