// TLS of one connection, server side: OpenSSL between bytes that JavaScript has read from a socket, and the socket's descriptor, which it
// writes to directly. JavaScript sends the bytes that the system does not take at once; until then nothing else is sent.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct TlsContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsContextFree>;

struct TlsContextOptions {
  // PEM: leaf first, then the chain; empty: none.
  std::string certificate;
  std::string key;
  // OpenSSL's cipher lists: up to TLS 1.2, and for TLS 1.3.
  std::string ciphers;
  std::string suites;
  std::string groups;
  int oldest = TLS1_2_VERSION;
  bool http2 = false;
};

// Null with `error` set when an option is unusable.
TlsContext MakeTlsContext(const TlsContextOptions& options, std::string* error);

class TlsSession {
 public:
  // The context for a server name; null: the handshake fails.
  using Choose = std::function<SSL_CTX*(const char* name)>;
  enum class State { kHandshake, kOpen, kEnded, kFailed };

  // Holds its own reference to `context`. The descriptor belongs to the caller, who calls `Detach` before closing it.
  TlsSession(SSL_CTX* context, int descriptor);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Adds received bytes; they stay in place until `Read` has returned 0, and are invalid afterwards. Only `Read` calls `choose`.
  void Push(const uint8_t* data, size_t length, const Choose* choose);
  // Continues the handshake, then decrypts. Returns the number of bytes; 0 when there is nothing to read.
  size_t Read(uint8_t* into, size_t length);
  // Encrypts; a part of a record waits for the next call, or for `Flush`.
  void Write(const uint8_t* data, size_t length);
  // Sends encrypted bytes, as many as the system takes.
  void Flush();
  // Sends the closing alert.
  void Shut();

  // True while the system takes nothing and JavaScript has the rest: nothing may be encrypted.
  bool blocked() const { return blocked_; }
  // JavaScript has sent its rest.
  void Unblock() { blocked_ = false; }
  void Detach() { descriptor_ = -1; }
  // The bytes that the system did not take; empty afterwards.
  std::string TakeRest();
  bool has_rest() const { return !rest_.empty(); }

  State state() const { return state_; }
  bool speaks_http2() const;
  const std::string& error() const { return error_; }

 private:
  friend TlsContext MakeTlsContext(const TlsContextOptions&, std::string*);
  static BIO_METHOD* Method();
  static int BioWrite(BIO* bio, const char* data, int length);
  static int BioRead(BIO* bio, char* data, int length);
  static long BioControl(BIO* bio, int command, long number, void* pointer);
  static int ChooseContext(SSL* ssl, int* alert, void*);
  static int ChooseProtocol(SSL* ssl, const unsigned char** out, unsigned char* out_length, const unsigned char* in, unsigned int in_length,
                            void* http2);

  void Fail(const char* what);
  void Encrypt(const uint8_t* data, size_t length);
  void EncryptStaged();
  void SendOut();

  SSL* ssl_;
  int descriptor_;
  State state_ = State::kHandshake;
  const Choose* choose_ = nullptr;
  const uint8_t* inbox_ = nullptr;
  size_t inbox_length_ = 0;
  bool blocked_ = false;
  std::string rest_;
  std::string error_;
};

}  // namespace millrace
