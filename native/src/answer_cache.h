// Answers of JavaScript to requests for files of streams, kept for all later clients that ask in the same way until JavaScript forgets
// them. Requests are compared, not interpreted: their header lines must equal, byte for byte, lines that JavaScript has judged. Belongs to
// one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory_file.h"

namespace millrace {

// The parts of a request for a file, as views of its text.
struct PlainRequest {
  std::string_view target;
  std::string_view path;
  // Token of the session.
  std::string_view token;
  // The query after the session.
  std::string_view rest;
  // The header lines, including the empty line at the end.
  std::string_view lines;
};

// Splits a request if it is all of `data`, and has the form `GET /…?session=…` without anything to decode; otherwise returns false. Header
// lines are not checked, except that nothing may follow them.
bool ReadPlainRequest(std::string_view data, PlainRequest* request);

// The answer to a request, without the text before `head`.
struct Answer {
  std::string key;
  uint32_t feed = 0;
  // The header lines after `Date`, including the empty line.
  std::string head;
  // Bytes that the answer adds to the counters of feed and session.
  uint64_t billed = 0;
  // The body: either `body` or `file`.
  std::string body;
  SharedMemoryFile file;
  // Offsets of the tails (`?session=TOKEN`) in the body, and the length of a tail; empty if the body is the same for all sessions.
  std::vector<uint32_t> places;
  size_t tail_length = 0;
  // For a body in gzip form, the checksum (CRC-32) of the text with zeros in place of tails, the checksum of one tail of zeros, and the
  // factor with which a tail's checksum counts in the whole.
  bool summed = false;
  uint32_t zero_sum = 0;
  uint32_t zero_tail_sum = 0;
  uint32_t shifts = 0;

  size_t length() const { return file != nullptr ? file->length() : body.size(); }
  // Writes the body for the session of `token` into `into`, which must have room for it.
  void Write(std::string_view token, char* into) const;
};

class AnswerLink;

// A request that JavaScript will answer later, with other requests for the same answer.
struct AnswerWait {
  std::string key;
  uint32_t feed = 0;
  // Unordered; each follower knows its index.
  std::vector<AnswerLink*> followers;
};

class AnswerCache {
 public:
  // Header lines that JavaScript has judged. Requests with lines of the same variant get the same answers.
  struct Lines {
    std::string text;
    uint32_t variant = 0;
    // `generation_` of the cache when JavaScript judged the lines.
    uint64_t generation = 0;
  };
  struct Session {
    std::string token;
    uint32_t feed = 0;
    // Wall clock, ms.
    double expires_at = 0;
    uint64_t bytes = 0;
    bool touched = false;
  };
  struct Figures {
    uint64_t requests = 0;
    uint64_t bytes = 0;
    uint64_t aborts = 0;
    uint64_t timeouts = 0;
    // Answers that were not kept for lack of room.
    uint64_t refused = 0;
    // Requests that began to wait for another's answer (`held`), found no room to wait (`crowded`), and lost their clients while they
    // waited (`left`).
    uint64_t held = 0;
    uint64_t crowded = 0;
    uint64_t left = 0;
  };

  // JavaScript answers longer requests.
  static constexpr size_t kMaxRequest = 4096;

  // `most_followers`: limit of requests that wait for the answers to other requests.
  explicit AnswerCache(size_t most_followers) : most_followers_(most_followers) {}
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;

  // The judged lines equal to `lines`, if JavaScript has judged them since `FlushAll`; otherwise null. `known` is compared first.
  const std::shared_ptr<Lines>* Known(std::string_view lines, const std::shared_ptr<Lines>& known);
  // The kept answer to a request of this variant, and its session; null: JavaScript must answer.
  const Answer* Find(const PlainRequest& request, uint32_t variant, Session** session);
  // Counts an answer of which `sent` bytes have been sent or queued.
  void Count(const Answer& answer, Session* session, size_t sent);

  // JavaScript has assigned these lines to `variant`.
  void Judge(std::string_view lines, uint32_t variant);
  // Keeps the answer for `request`; false: there is no room.
  bool Keep(const PlainRequest& request, uint32_t variant, std::unique_ptr<Answer> answer);
  // Forgets all answers of a feed.
  void Flush(uint32_t feed);
  // Forgets all answers, judged lines and sessions, and ends all waits.
  void FlushAll();

  // JavaScript will answer `request` later, and others may wait for that. Null when requests already wait for the same answer, or there is
  // no room.
  std::shared_ptr<AnswerWait> BeginWait(const PlainRequest& request, uint32_t variant, uint32_t feed);
  // No further request begins to wait for this answer.
  void EndWait(const AnswerWait& wait);
  // The waits for answers of a feed.
  std::vector<std::shared_ptr<AnswerWait>> WaitsOf(uint32_t feed) const;
  // The wait that a request of this variant can join; null when there is none, or no room. The session then counts as active.
  std::shared_ptr<AnswerWait> Follow(const PlainRequest& request, uint32_t variant);
  // A request has left its wait.
  void Unfollow() { followers_ -= 1; }
  size_t followers() const { return followers_; }
  // Links whose requests JavaScript must answer after all, when it has time.
  std::vector<std::weak_ptr<AnswerLink>>& released() { return released_; }

  // Opens a session that may watch `feed`, and returns its number; a known token keeps its number.
  uint32_t OpenSession(std::string_view token, uint32_t feed, double expires_at);
  void CloseSession(uint32_t session);

  Figures& figures() { return figures_; }
  // Feeds that were requested since the last call, and their bytes: feed, bytes, …
  std::vector<double> TakeFeeds();
  // Sessions that were active since the last call, and their bytes: session, bytes, …
  std::vector<double> TakeSessions();

 private:
  std::string_view KeyOf(const PlainRequest& request, uint32_t variant);
  // The session of `token`, if it may watch `feed` and has not expired; otherwise null.
  Session* SessionOf(std::string_view token, uint32_t feed);
  void Touch(Session* session);

  struct Feed {
    uint64_t bytes = 0;
    bool asked = false;
    std::vector<Answer*> answers;
  };

  uint64_t generation_ = 1;
  std::unordered_map<std::string_view, std::shared_ptr<Lines>> lines_;
  std::unordered_map<std::string_view, std::unique_ptr<Answer>> answers_;
  size_t bytes_ = 0;
  std::unordered_map<uint32_t, Feed> feeds_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<uint32_t> free_;
  std::unordered_map<std::string_view, uint32_t> tokens_;
  std::vector<uint32_t> touched_;
  const size_t most_followers_;
  size_t followers_ = 0;
  std::unordered_map<std::string_view, std::shared_ptr<AnswerWait>> waits_;
  std::vector<std::weak_ptr<AnswerLink>> released_;
  Figures figures_;
  std::string key_;
};

}  // namespace millrace
