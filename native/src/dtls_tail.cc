#include "dtls_tail.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <cstring>

#include "bytes.h"

namespace millrace {
namespace {

constexpr size_t kHeader = 13;
constexpr size_t kTag = 16;
constexpr size_t kAlert = 2;
constexpr size_t kGcmExplicitNonce = 8;
constexpr size_t kGcmFixedIv = 4;
constexpr size_t kRandom = 32;
constexpr uint8_t kTypeAlert = 21;
constexpr uint8_t kTypeHandshake = 22;
constexpr uint8_t kLevelWarning = 1;
constexpr uint8_t kLevelFatal = 2;
constexpr uint8_t kCloseNotify = 0;
constexpr uint16_t kEpoch = 1;
// The library counts from 0 and has sent few records, so these numbers are unused.
constexpr uint64_t kFirstSequence = 1u << 16;
// A client that has missed the last flight this often will not get it; the limit also prevents reflection.
constexpr int kMaxResent = 16;

// P_hash of RFC 5246 section 5.
bool Expand(const EVP_MD* digest, const std::string& secret, const std::string& seed, uint8_t* out, size_t length) {
  std::string a = seed;
  uint8_t block[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int secret_length = static_cast<int>(secret.size());
  while (length > 0) {
    if (HMAC(digest, secret.data(), secret_length, reinterpret_cast<const uint8_t*>(a.data()), a.size(), block, &size) == nullptr) return false;
    a.assign(reinterpret_cast<char*>(block), size);
    const std::string input = a + seed;
    if (HMAC(digest, secret.data(), secret_length, reinterpret_cast<const uint8_t*>(input.data()), input.size(), block, &size) == nullptr)
      return false;
    const size_t taken = length < size ? length : size;
    memcpy(out, block, taken);
    out += taken;
    length -= taken;
  }
  OPENSSL_cleanse(block, sizeof block);
  return true;
}

struct ContextFree {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

// Additional data of a record (RFC 5246 section 6.2.3.3): sequence, type, version, length of the plain text.
void AdditionalData(const uint8_t* header, uint8_t out[13]) {
  memcpy(out, header + 3, 8);
  memcpy(out + 8, header, 3);
  Write16(out + 11, kAlert);
}

}  // namespace

std::unique_ptr<DtlsTail> DtlsTail::Of(SSL* ssl, bool server, std::vector<std::string> last_flight) {
  const SSL_CIPHER* suite = SSL_get_current_cipher(ssl);
  const SSL_SESSION* session = SSL_get_session(ssl);
  if (suite == nullptr || session == nullptr || SSL_version(ssl) != DTLS1_2_VERSION) return nullptr;
  std::unique_ptr<DtlsTail> tail(new DtlsTail());
  size_t key_length = 16;
  switch (SSL_CIPHER_get_cipher_nid(suite)) {
    case NID_aes_128_gcm:
      tail->cipher_ = EVP_aes_128_gcm();
      break;
    case NID_aes_256_gcm:
      tail->cipher_ = EVP_aes_256_gcm();
      key_length = 32;
      break;
    case NID_chacha20_poly1305:
      tail->cipher_ = EVP_chacha20_poly1305();
      tail->chacha_ = true;
      key_length = 32;
      break;
    default:
      return nullptr;
  }
  const size_t iv_length = tail->chacha_ ? sizeof tail->local_.iv : kGcmFixedIv;
  std::string secret(SSL_MAX_MASTER_KEY_LENGTH, '\0');
  secret.resize(SSL_SESSION_get_master_key(session, reinterpret_cast<uint8_t*>(&secret[0]), secret.size()));
  // Key expansion (RFC 5246 section 6.3): server random first.
  uint8_t random[2 * kRandom];
  SSL_get_server_random(ssl, random, kRandom);
  SSL_get_client_random(ssl, random + kRandom, kRandom);
  const std::string seed = "key expansion" + std::string(reinterpret_cast<char*>(random), sizeof random);
  uint8_t block[2 * (sizeof(Direction))];
  const bool ok = Expand(SSL_CIPHER_get_handshake_digest(suite), secret, seed, block, 2 * (key_length + iv_length));
  OPENSSL_cleanse(&secret[0], secret.size());
  if (ok) {
    Direction& client = server ? tail->remote_ : tail->local_;
    Direction& own = server ? tail->local_ : tail->remote_;
    memcpy(client.key, block, key_length);
    memcpy(own.key, block + key_length, key_length);
    memcpy(client.iv, block + 2 * key_length, iv_length);
    memcpy(own.iv, block + 2 * key_length + iv_length, iv_length);
  }
  OPENSSL_cleanse(block, sizeof block);
  if (!ok) return nullptr;
  tail->next_sequence_ = kFirstSequence;
  if (server) tail->last_flight_ = std::move(last_flight);
  return tail;
}

DtlsTail::~DtlsTail() {
  OPENSSL_cleanse(&local_, sizeof local_);
  OPENSSL_cleanse(&remote_, sizeof remote_);
}

size_t DtlsTail::explicit_nonce() const { return chacha_ ? 0 : kGcmExplicitNonce; }

void DtlsTail::Nonce(const Direction& direction, const uint8_t* sequence, const uint8_t* explicit_part, uint8_t nonce[12]) const {
  memcpy(nonce, direction.iv, 12);
  if (chacha_) {
    // RFC 7905 section 2.
    for (int n = 0; n < 8; n += 1) nonce[4 + n] ^= sequence[n];
  } else {
    // RFC 5288 section 3.
    memcpy(nonce + kGcmFixedIv, explicit_part, kGcmExplicitNonce);
  }
}

bool DtlsTail::Receive(const uint8_t* data, size_t length, std::vector<std::string>* outbox) {
  bool asked = false;
  bool ended = false;
  for (size_t at = 0; at + kHeader <= length;) {
    const size_t size = Read16(data + at + 11);
    if (at + kHeader + size > length) break;
    uint8_t alert[kAlert];
    if (data[at] == kTypeHandshake) asked = true;
    if (data[at] == kTypeAlert && OpenAlert(data + at, kHeader + size, alert)) {
      ended = ended || alert[1] == kCloseNotify || alert[0] == kLevelFatal;
    }
    at += kHeader + size;
  }
  if (asked && !ended && resent_ < kMaxResent && !last_flight_.empty()) {
    resent_ += 1;
    outbox->insert(outbox->end(), last_flight_.begin(), last_flight_.end());
  }
  return ended;
}

bool DtlsTail::OpenAlert(const uint8_t* record, size_t length, uint8_t alert[2]) const {
  const size_t nonce_length = explicit_nonce();
  if (Read16(record + 3) != kEpoch || length != kHeader + nonce_length + kAlert + kTag) return false;
  uint8_t nonce[12];
  uint8_t additional[13];
  Nonce(remote_, record + 3, record + kHeader, nonce);
  AdditionalData(record, additional);
  const uint8_t* text = record + kHeader + nonce_length;
  uint8_t tag[kTag];
  memcpy(tag, text + kAlert, kTag);
  std::unique_ptr<EVP_CIPHER_CTX, ContextFree> context(EVP_CIPHER_CTX_new());
  int written = 0;
  return context && EVP_DecryptInit_ex(context.get(), cipher_, nullptr, remote_.key, nonce) == 1 &&
         EVP_DecryptUpdate(context.get(), nullptr, &written, additional, sizeof additional) == 1 &&
         EVP_DecryptUpdate(context.get(), alert, &written, text, kAlert) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTag, tag) == 1 &&
         EVP_DecryptFinal_ex(context.get(), alert + written, &written) == 1;
}

std::string DtlsTail::CloseNotify() {
  const size_t nonce_length = explicit_nonce();
  std::string record(kHeader + nonce_length + kAlert + kTag, '\0');
  auto* bytes = reinterpret_cast<uint8_t*>(&record[0]);
  bytes[0] = kTypeAlert;
  Write16(bytes + 1, DTLS1_2_VERSION);
  Write16(bytes + 3, kEpoch);
  Write16(bytes + 5, static_cast<uint16_t>(next_sequence_ >> 32));
  Write32(bytes + 7, static_cast<uint32_t>(next_sequence_));
  Write16(bytes + 11, static_cast<uint16_t>(record.size() - kHeader));
  next_sequence_ += 1;
  if (nonce_length > 0) memcpy(bytes + kHeader, bytes + 3, nonce_length);
  uint8_t nonce[12];
  uint8_t additional[13];
  Nonce(local_, bytes + 3, bytes + kHeader, nonce);
  AdditionalData(bytes, additional);
  const uint8_t alert[kAlert] = {kLevelWarning, kCloseNotify};
  uint8_t* text = bytes + kHeader + nonce_length;
  std::unique_ptr<EVP_CIPHER_CTX, ContextFree> context(EVP_CIPHER_CTX_new());
  int written = 0;
  const bool ok = context && EVP_EncryptInit_ex(context.get(), cipher_, nullptr, local_.key, nonce) == 1 &&
                  EVP_EncryptUpdate(context.get(), nullptr, &written, additional, sizeof additional) == 1 &&
                  EVP_EncryptUpdate(context.get(), text, &written, alert, kAlert) == 1 &&
                  EVP_EncryptFinal_ex(context.get(), text + written, &written) == 1 &&
                  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTag, text + kAlert) == 1;
  return ok ? record : std::string();
}

}  // namespace millrace
