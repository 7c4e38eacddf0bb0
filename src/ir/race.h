// Race check of a kernel on a target whose pipes run side by side: each pipe is a thread with a vector clock, `set`
// releases, `wait` acquires, `fence` lets a pipe wait for itself. The interpreter tells it every byte that a statement
// touches, at the address it has on the device, so tiles that overlap are found as well as missing or wrong events. An
// event is checked in both readings of its identity: (source, destination, id) and (source, id).
// What a pipe orders by itself is the target's: OrderRow. Findings of open rules are warnings.
#pragma once
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "ir/kernel.h"

namespace gaf::kir {

class RaceCheck {
 public:
  RaceCheck(const Kernel& k, const Target& t);

  void begin(const Stmt& s);             // the statement that does what follows
  void declare(int tile, int64_t slot);  // the slot of its ring that the tile has now
  // `bytes` bytes of a tile from its slot's start, or of a buffer (-1 - buffer)
  void touch(int tile_or_buffer, int64_t offset, int64_t bytes, bool write);
  void sync(const Sync& s, int64_t event);
  std::vector<KernelProblem> finish();

 private:
  static constexpr size_t kPipes = std::size(kPipeName);
  using Clock = std::array<uint32_t, kPipes>;  // statements of each pipe known to have finished
  struct Cell {                                // a byte
    int8_t writer = -1;                        // the pipe of its last write, that statement's number there
    int16_t owner = -1;                        // the tile that wrote it
    uint32_t when = 0;
    Clock read{};  // last statement of each pipe that read it since
  };
  struct Event {
    bool up = false;
    Clock released{};
    uint32_t waited = 0;  // number of the last wait on the destination
  };
  const Kernel& k_;
  const Target& t_;
  const Stmt* now_ = nullptr;
  std::optional<Pipe> pipe_;
  std::array<uint32_t, kPipes> count_{};  // statements begun
  std::array<Clock, kPipes> seen_{};
  std::map<std::tuple<Pipe, Pipe, int64_t>, Event> events_;
  std::vector<std::vector<Cell>> tiles_, bufs_;  // by memory, by buffer
  std::vector<int64_t> base_;                    // of each tile
  std::vector<KernelProblem> problems_;
  std::set<std::tuple<const Stmt*, int, int, int>> told_;  // statement, kind, and what with

  enum Kind : int { raw, waw, war, overwritten, event };
  bool fresh(Kind kind, int a, int b);  // not told of yet
  void tell(std::string text, bool warning = false);
  std::string place(int tile_or_buffer) const;
  void set(const Sync& s, int64_t id);
  // Has pipe p seen statement `when` of pipe q finish? Tells if not.
  void ordered(Kind kind, size_t q, uint32_t when, int what);
};

}  // namespace gaf::kir
