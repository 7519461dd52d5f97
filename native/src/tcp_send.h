// Sending on TCP sockets of Node.js: `src/delivery/http/direct-sender.ts` gives the functions types.
#pragma once

#include "napi-values.h"

namespace millrace {

napi_value ImageOpen(const Arguments& arguments);
napi_value ImageClose(const Arguments& arguments);
napi_value TcpSend(const Arguments& arguments);
napi_value TcpSendImage(const Arguments& arguments);

}  // namespace millrace
