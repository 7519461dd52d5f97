#include "answer_cache.h"

#include <cstring>
#include <ctime>

#include "answer_link.h"

namespace millrace {
namespace {

constexpr size_t kMaxTarget = 2048;
constexpr size_t kMaxToken = 96;
// Limits: peers choose what fills these tables.
constexpr size_t kMaxLines = 2048;
constexpr size_t kMaxAnswers = 4096;
constexpr size_t kMaxBytes = 64 * 1024 * 1024;
constexpr size_t kMaxWaits = 4096;

constexpr std::string_view kMethod = "GET /";
constexpr std::string_view kVersion = " HTTP/1.1\r\n";
constexpr std::string_view kEnd = "\r\n\r\n";
constexpr std::string_view kSession = "session=";
constexpr std::string_view kTail = "?session=";
constexpr size_t kSum = 4;
constexpr size_t kTrailer = 8;

double WallClock() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) * 1000 + static_cast<double>(now.tv_nsec) / 1e6;
}

bool IsTokenByte(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-';
}

// The product of two polynomials modulo the CRC-32 polynomial, reflected: the highest bit is x^0.
uint32_t TimesModulo(uint32_t one, uint32_t other) {
  uint32_t product = 0;
  for (; one != 0; one <<= 1) {
    if ((one & 0x80000000u) != 0) product ^= other;
    other = (other & 1) == 0 ? other >> 1 : (other >> 1) ^ 0xedb88320u;
  }
  return product;
}

struct SumTable {
  uint32_t of[256];
  constexpr SumTable() : of() {
    for (uint32_t byte = 0; byte < 256; byte += 1) {
      uint32_t sum = byte;
      for (int bit = 0; bit < 8; bit += 1) sum = (sum & 1) == 0 ? sum >> 1 : (sum >> 1) ^ 0xedb88320u;
      of[byte] = sum;
    }
  }
};
constexpr SumTable kSums;

uint32_t SumOf(const char* data, size_t length) {
  uint32_t sum = ~0u;
  for (size_t n = 0; n < length; n += 1) sum = kSums.of[(sum ^ static_cast<uint8_t>(data[n])) & 0xff] ^ (sum >> 8);
  return ~sum;
}

}  // namespace

bool ReadPlainRequest(std::string_view data, PlainRequest* request) {
  if (data.size() > AnswerCache::kMaxRequest || data.substr(0, kMethod.size()) != kMethod) return false;
  const size_t start = kMethod.size() - 1;
  size_t at = start;
  size_t query = std::string_view::npos;
  for (; at < data.size() && data[at] != ' '; at += 1) {
    const char byte = data[at];
    // Targets that need decoding or may be refused are for JavaScript.
    if (byte <= ' ' || byte >= 0x7f || byte == '%' || byte == '#') return false;
    if (byte != '?') continue;
    if (query != std::string_view::npos) return false;
    query = at;
  }
  if (at - start > kMaxTarget || query == std::string_view::npos || data.substr(at, kVersion.size()) != kVersion) return false;
  request->target = data.substr(start, at - start);
  request->path = data.substr(start, query - start);
  request->lines = data.substr(at + kVersion.size());
  // A request without header lines ends directly after the request line.
  if (data.find(kEnd, at) != data.size() - kEnd.size()) return false;
  const std::string_view text = data.substr(query + 1, at - query - 1);
  if (text.substr(0, kSession.size()) != kSession) return false;
  size_t end = kSession.size();
  while (end < text.size() && IsTokenByte(text[end])) end += 1;
  request->token = text.substr(kSession.size(), end - kSession.size());
  if (request->token.empty() || request->token.size() > kMaxToken || (end < text.size() && text[end] != '&')) return false;
  request->rest = text.substr(end);
  return true;
}

void Answer::Write(std::string_view token, char* into) const {
  memcpy(into, body.data(), body.size());
  if (places.empty()) return;
  for (const uint32_t place : places) {
    memcpy(into + place, kTail.data(), kTail.size());
    memcpy(into + place + kTail.size(), token.data(), token.size());
  }
  if (!summed) return;
  const uint32_t sum = zero_sum ^ TimesModulo(shifts, SumOf(into + places[0], tail_length) ^ zero_tail_sum);
  for (size_t n = 0; n < kSum; n += 1) into[body.size() - kTrailer + n] = static_cast<char>(sum >> (8 * n));
}

const std::shared_ptr<AnswerCache::Lines>* AnswerCache::Known(std::string_view lines, const std::shared_ptr<Lines>& known) {
  if (known != nullptr && known->generation == generation_ && known->text == lines) return &known;
  const auto found = lines_.find(lines);
  return found == lines_.end() || found->second->generation != generation_ ? nullptr : &found->second;
}

std::string_view AnswerCache::KeyOf(const PlainRequest& request, uint32_t variant) {
  key_.assign(reinterpret_cast<const char*>(&variant), sizeof variant);
  // A blank separates them because no path contains one.
  key_.append(request.path).append(1, ' ').append(request.rest);
  return key_;
}

const Answer* AnswerCache::Find(const PlainRequest& request, uint32_t variant, Session** session) {
  const auto found = answers_.find(KeyOf(request, variant));
  if (found == answers_.end()) return nullptr;
  const Answer& answer = *found->second;
  Session* own = SessionOf(request.token, answer.feed);
  if (own == nullptr) return nullptr;
  if (!answer.places.empty() && answer.tail_length != kTail.size() + request.token.size()) return nullptr;
  if (answer.file != nullptr && answer.file->descriptor() < 0) return nullptr;
  *session = own;
  return &answer;
}

AnswerCache::Session* AnswerCache::SessionOf(std::string_view token, uint32_t feed) {
  const auto slot = tokens_.find(token);
  if (slot == tokens_.end()) return nullptr;
  Session* session = sessions_[slot->second].get();
  return session->feed != feed || session->expires_at <= WallClock() ? nullptr : session;
}

void AnswerCache::Touch(Session* session) {
  if (!session->touched) touched_.push_back(tokens_[session->token]);
  session->touched = true;
}

void AnswerCache::Count(const Answer& answer, Session* session, size_t sent) {
  figures_.requests += 1;
  figures_.bytes += sent;
  Feed& feed = feeds_[answer.feed];
  feed.bytes += answer.billed;
  feed.asked = true;
  Touch(session);
  session->bytes += answer.billed;
}

void AnswerCache::Judge(std::string_view lines, uint32_t variant) {
  const auto found = lines_.find(lines);
  if (found != lines_.end()) {
    found->second->variant = variant;
    found->second->generation = generation_;
    return;
  }
  // Links hold on to the lines that they use.
  if (lines_.size() >= kMaxLines) lines_.clear();
  auto made = std::make_shared<Lines>();
  made->text = lines;
  made->variant = variant;
  made->generation = generation_;
  const std::string_view key = made->text;
  lines_.emplace(key, std::move(made));
}

bool AnswerCache::Keep(const PlainRequest& request, uint32_t variant, std::unique_ptr<Answer> answer) {
  const std::string_view key = KeyOf(request, variant);
  if (answers_.find(key) != answers_.end()) return true;
  if (answers_.size() >= kMaxAnswers || bytes_ + answer->body.size() > kMaxBytes) {
    figures_.refused += 1;
    return false;
  }
  answer->key = key;
  bytes_ += answer->body.size();
  feeds_[answer->feed].answers.push_back(answer.get());
  const std::string_view own = answer->key;
  answers_.emplace(own, std::move(answer));
  return true;
}

void AnswerCache::Flush(uint32_t feed) {
  const auto found = feeds_.find(feed);
  if (found == feeds_.end()) return;
  for (const Answer* answer : found->second.answers) {
    bytes_ -= answer->body.size();
    // Erased by iterator: the key belongs to the answer that is freed.
    answers_.erase(answers_.find(answer->key));
  }
  found->second.answers.clear();
}

void AnswerCache::FlushAll() {
  answers_.clear();
  bytes_ = 0;
  for (auto& [feed, its] : feeds_) its.answers.clear();
  generation_ += 1;
  lines_.clear();
  sessions_.clear();
  free_.clear();
  tokens_.clear();
  touched_.clear();
  std::vector<std::shared_ptr<AnswerWait>> waits;
  for (const auto& [key, wait] : waits_) waits.push_back(wait);
  waits_.clear();
  for (const auto& wait : waits) AnswerLink::Decide(wait.get());
}

std::shared_ptr<AnswerWait> AnswerCache::BeginWait(const PlainRequest& request, uint32_t variant, uint32_t feed) {
  const std::string_view key = KeyOf(request, variant);
  if (waits_.find(key) != waits_.end() || waits_.size() >= kMaxWaits) return nullptr;
  auto wait = std::make_shared<AnswerWait>();
  wait->key = key;
  wait->feed = feed;
  waits_.emplace(wait->key, wait);
  return wait;
}

void AnswerCache::EndWait(const AnswerWait& wait) {
  const auto found = waits_.find(wait.key);
  if (found != waits_.end() && found->second.get() == &wait) waits_.erase(found);
}

std::vector<std::shared_ptr<AnswerWait>> AnswerCache::WaitsOf(uint32_t feed) const {
  std::vector<std::shared_ptr<AnswerWait>> waits;
  for (const auto& [key, wait] : waits_) {
    if (wait->feed == feed) waits.push_back(wait);
  }
  return waits;
}

std::shared_ptr<AnswerWait> AnswerCache::Follow(const PlainRequest& request, uint32_t variant) {
  if (waits_.empty()) return nullptr;
  const auto found = waits_.find(KeyOf(request, variant));
  if (found == waits_.end()) return nullptr;
  Session* session = SessionOf(request.token, found->second->feed);
  if (session == nullptr) return nullptr;
  if (followers_ >= most_followers_) {
    figures_.crowded += 1;
    return nullptr;
  }
  followers_ += 1;
  feeds_[found->second->feed].asked = true;
  Touch(session);
  return found->second;
}

uint32_t AnswerCache::OpenSession(std::string_view token, uint32_t feed, double expires_at) {
  const auto known = tokens_.find(token);
  if (known != tokens_.end()) {
    sessions_[known->second]->feed = feed;
    sessions_[known->second]->expires_at = expires_at;
    return known->second;
  }
  uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(sessions_.size());
    sessions_.push_back(nullptr);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  sessions_[slot] = std::make_unique<Session>();
  sessions_[slot]->token = token;
  sessions_[slot]->feed = feed;
  sessions_[slot]->expires_at = expires_at;
  tokens_.emplace(sessions_[slot]->token, slot);
  return slot;
}

void AnswerCache::CloseSession(uint32_t session) {
  if (session >= sessions_.size() || sessions_[session] == nullptr) return;
  tokens_.erase(sessions_[session]->token);
  sessions_[session].reset();
  free_.push_back(session);
}

std::vector<double> AnswerCache::TakeFeeds() {
  std::vector<double> taken;
  for (auto at = feeds_.begin(); at != feeds_.end();) {
    Feed& feed = at->second;
    if (feed.asked) {
      taken.push_back(at->first);
      taken.push_back(static_cast<double>(feed.bytes));
    }
    feed.bytes = 0;
    feed.asked = false;
    if (feed.answers.empty()) at = feeds_.erase(at);
    else ++at;
  }
  return taken;
}

std::vector<double> AnswerCache::TakeSessions() {
  std::vector<double> taken;
  for (const uint32_t slot : touched_) {
    // The slot may belong to another session by now, which is listed itself if it was touched.
    if (slot >= sessions_.size() || sessions_[slot] == nullptr || !sessions_[slot]->touched) continue;
    Session& session = *sessions_[slot];
    taken.push_back(slot);
    taken.push_back(static_cast<double>(session.bytes));
    session.bytes = 0;
    session.touched = false;
  }
  touched_.clear();
  return taken;
}

}  // namespace millrace
