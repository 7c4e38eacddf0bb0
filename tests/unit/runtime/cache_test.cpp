// The kernel cache: round trip, several processes, and what must not be trusted.
#include "runtime/cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace gaf {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Artifact artifact(size_t bytes, uint8_t fill) {
  Artifact a;
  a.object.assign(bytes, fill);
  a.phases = 2;
  a.scratch_bytes = 4096;
  a.in_place = {{2, 0}, {3, 1}};
  return a;
}

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gaf_cache_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    base_ = name;
    dir_ = base_ / "a" / "b";
  }
  void TearDown() override { fs::remove_all(base_); }
  KernelCache open(int64_t limit = KernelCache::kDefaultLimit) {
    return KernelCache(dir_, limit, [this](const std::string& w) { warnings_.push_back(w); });
  }
  fs::path entry(const std::string& key) const { return dir_ / (key + ".gko"); }
  fs::path base_, dir_;
  std::vector<std::string> warnings_;
};

TEST_F(CacheTest, RoundTripInANewFolder) {
  {
    KernelCache c = open();
    EXPECT_FALSE(c.get("k1"));
    c.put("k1", artifact(1000, 7));
  }
  KernelCache c = open();
  const auto a = c.get("k1");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->object, artifact(1000, 7).object);
  EXPECT_EQ(a->phases, 2);
  EXPECT_EQ(a->scratch_bytes, 4096);
  EXPECT_EQ(a->in_place, artifact(1000, 7).in_place);
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(fs::status(dir_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(entry("k1")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CacheTest, MemoryOnly) {
  KernelCache c("");
  c.put("k", artifact(10, 1));
  EXPECT_TRUE(c.get("k"));
  EXPECT_EQ(c.folder(), "");
  EXPECT_EQ(c.usage().entries, 1);
}

TEST_F(CacheTest, EveryDamagedByteIsFound) {
  KernelCache c = open();
  for (int at : {0, 8, 20, 24, 32, 40, 47, 48, 60, 147}) {
    c.put("k", artifact(100, 3));
    std::fstream f(entry("k"), std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const auto old = static_cast<char>(f.get());
    f.seekp(at);
    f.put(static_cast<char>(old ^ 1));
    f.close();
    EXPECT_FALSE(c.get("k")) << "byte " << at;
    EXPECT_FALSE(fs::exists(entry("k"))) << "byte " << at;
  }
}

TEST_F(CacheTest, TruncatedOrLonger) {
  KernelCache c = open();
  for (int size : {0, 10, 48, 100, 200}) {
    c.put("k", artifact(100, 3));
    fs::resize_file(entry("k"), static_cast<uintmax_t>(size));
    EXPECT_FALSE(c.get("k")) << size;
  }
}

TEST_F(CacheTest, EntryUnderAnotherName) {
  KernelCache c = open();
  c.put("k1", artifact(100, 3));
  fs::rename(entry("k1"), entry("k2"));
  EXPECT_FALSE(c.get("k2"));
}

TEST_F(CacheTest, LinkedEntryIsNotFollowed) {
  KernelCache c = open();
  c.put("k", artifact(100, 3));
  fs::rename(entry("k"), base_ / "elsewhere");
  fs::create_symlink(base_ / "elsewhere", entry("k"));
  EXPECT_FALSE(c.get("k"));
  EXPECT_TRUE(fs::exists(base_ / "elsewhere"));
  c.put("k", artifact(50, 4));
  EXPECT_EQ(c.get("k")->object.size(), 50U);
  EXPECT_FALSE(fs::is_symlink(entry("k")));
}

TEST_F(CacheTest, EntryThatOthersMayWrite) {
  KernelCache c = open();
  c.put("k", artifact(100, 3));
  fs::permissions(entry("k"), fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(c.get("k"));
}

TEST_F(CacheTest, PipeInsteadOfAnEntry) {
  KernelCache c = open();
  ASSERT_EQ(mkfifo(entry("k").c_str(), 0600), 0);
  EXPECT_FALSE(c.get("k"));  // and does not hang
}

TEST_F(CacheTest, RefusedFolders) {
  fs::create_directories(dir_);
  for (const char* what : {"group", "link", "file"}) {
    fs::remove_all(dir_);
    if (std::string(what) == "group") {
      fs::create_directories(dir_);
      fs::permissions(dir_, fs::perms::owner_all | fs::perms::group_all);
    } else if (std::string(what) == "link") {
      fs::create_directories(base_ / "real");
      fs::create_symlink(base_ / "real", dir_);
    } else {
      std::ofstream(dir_.string()) << "x";
    }
    warnings_.clear();
    KernelCache c = open();
    EXPECT_EQ(c.folder(), "") << what;
    ASSERT_EQ(warnings_.size(), 1U) << what;
    EXPECT_THAT(warnings_[0], HasSubstr("GAF8003"));
    c.put("k", artifact(10, 1));
    EXPECT_TRUE(c.get("k")) << what;  // memory
    EXPECT_EQ(warnings_.size(), 1U);
  }
  if (geteuid() == 0) {  // another user's folder
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    fs::permissions(dir_, fs::perms::owner_all);
    ASSERT_EQ(chown(dir_.c_str(), 12345, 12345), 0);
    warnings_.clear();
    EXPECT_EQ(open().folder(), "");
    EXPECT_THAT(warnings_.at(0), HasSubstr("another user"));
  }
}

TEST_F(CacheTest, FolderTakenAwayMeanwhile) {
  KernelCache c = open();
  fs::remove_all(dir_);
  c.put("k", artifact(10, 1));
  EXPECT_FALSE(c.get("k"));
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(CacheTest, OldestGoFirst) {
  KernelCache c = open(10'000);
  for (int i = 0; i < 8; i++) {
    c.put("k" + std::to_string(i), artifact(1000, static_cast<uint8_t>(i)));
    const timespec old[2] = {{1'000'000 + i, 0}, {1'000'000 + i, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, entry("k" + std::to_string(i)).c_str(), old, 0), 0);
  }
  ASSERT_TRUE(c.get("k0"));  // used: not the oldest any more
  for (int i = 8; i < 12; i++) c.put("k" + std::to_string(i), artifact(1000, 0));
  c.prune();
  EXPECT_LE(c.usage().bytes, 10'000);
  EXPECT_TRUE(c.get("k0"));
  EXPECT_FALSE(c.get("k1"));
  EXPECT_FALSE(c.get("k2"));
  EXPECT_TRUE(c.get("k7"));
  EXPECT_TRUE(c.get("k11"));
}

TEST_F(CacheTest, BoundHoldsWithoutAskingForIt) {
  KernelCache c = open(20'000);
  for (int i = 0; i < 100; i++) c.put("k" + std::to_string(i), artifact(1000, 0));
  EXPECT_LE(c.usage().bytes, 22'000);  // a sixteenth may come on top between two prunings
}

TEST_F(CacheTest, ThreadsAndProcesses) {
  auto work = [&](int seed) {
    KernelCache c(dir_, 50'000);
    for (int i = 0; i < 100; i++) {
      const int k = (i * 7 + seed) % 13;
      c.put("k" + std::to_string(k), artifact(1000 + static_cast<size_t>(k), static_cast<uint8_t>(k)));
      const auto a = c.get("k" + std::to_string((k + 1) % 13));
      const auto want = static_cast<size_t>(1000 + (k + 1) % 13);
      if (a && (a->object.size() != want || a->object[0] != (k + 1) % 13)) return false;
    }
    return true;
  };
#if !defined(__SANITIZE_THREAD__)
  std::vector<pid_t> children;
  for (int p = 0; p < 3; p++) {
    const pid_t child = fork();
    if (child == 0) _exit(work(p) ? 0 : 1);
    children.push_back(child);
  }
#endif
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; t++) threads.emplace_back([&, t] { wrong += !work(t + 10); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
#if !defined(__SANITIZE_THREAD__)
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
#endif
  for (const auto& e : fs::directory_iterator(dir_)) EXPECT_NE(e.path().extension(), ".part");
}

TEST_F(CacheTest, KeysCannotLeaveTheFolder) {
  KernelCache c = open();
  EXPECT_THROW(c.put("../x", artifact(1, 1)), InternalError);
  EXPECT_THROW(c.get(""), InternalError);
}

TEST(CacheFolder, FromTheEnvironment) {
  setenv("AUTOFUSION_CACHE_DIR", "/x/y", 1);
  EXPECT_EQ(default_cache_dir(), "/x/y");
  setenv("AUTOFUSION_CACHE_DIR", "", 1);
  EXPECT_EQ(default_cache_dir(), "");
  unsetenv("AUTOFUSION_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/c", 1);
  EXPECT_EQ(default_cache_dir(), "/c/graph-autofusion");
  unsetenv("XDG_CACHE_HOME");
}

TEST(HashKey, IsStable) {
  EXPECT_EQ(hash_key("").size(), 32U);
  EXPECT_EQ(hash_key("kernel"), hash_key("kernel"));
  EXPECT_NE(hash_key("kernel"), hash_key("kernem"));
}

}  // namespace
}  // namespace gaf
