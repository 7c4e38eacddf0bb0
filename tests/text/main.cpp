// Runs the text tests: every tests/text/<stage>/*.gaf is split into cases, each case a test of its own. GAF_BLESS=1 rewrites
// the expected sections in place instead of comparing them.
//
//   ==== name                          a case; the line may be absent before the first
//   # run: simplify target=x86-64-avx2 steps in order, and options
//   # contract: N14                    promised names that the case holds
//   input                              a line may end in  # error: words  or  # warning: words  that its problem contains
//   ---- graph                         expected text of that section of the last step
//   ---- same-as                       another input that must give the same sections as the first
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "text_steps.h"

namespace gaf::text {
namespace {

struct Case {
  std::string name, contract;
  std::vector<std::string> header;  // lines as they stand, for blessing
  std::vector<std::string> run;     // step names
  Options options;
  std::string input;
  std::vector<Section> expected;
  std::string problem;              // of the case itself
};

std::vector<std::string> split_words(const std::string& s) {
  std::istringstream in(s);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

std::vector<Case> read_cases(const std::string& text) {
  std::vector<Case> cases;
  std::string* into = nullptr;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("==== ") || cases.empty()) {
      cases.emplace_back();
      into = &cases.back().input;
      if (line.starts_with("==== ")) {
        cases.back().name = line.substr(5);
        continue;
      }
    }
    Case& c = cases.back();
    if (line.starts_with("---- ")) {
      c.expected.push_back({line.substr(5), ""});
      into = &c.expected.back().text;
    } else if (c.input.empty() && c.expected.empty() && (line.starts_with("# run:") || line.starts_with("# contract:") || line.empty())) {
      c.header.push_back(line);
      if (line.starts_with("# contract:")) c.contract = line.substr(11);
      if (line.starts_with("# run:"))
        for (const std::string& w : split_words(line.substr(6))) {
          size_t equals = w.find('=');
          if (equals == std::string::npos) c.run.push_back(w);
          else c.options[w.substr(0, equals)] = w.substr(equals + 1);
        }
    } else {
      *into += line + "\n";
    }
  }
  return cases;
}

std::string write_cases(const std::vector<Case>& cases) {
  std::string out;
  for (const Case& c : cases) {
    if (!c.name.empty()) out += "==== " + c.name + "\n";
    for (const std::string& h : c.header) out += h + "\n";
    out += c.input;
    for (const Section& s : c.expected) out += "---- " + s.name + "\n" + s.text;
  }
  return out;
}

Result run_steps(const Case& c, const std::string& input, const Steps& steps) {
  Result result;
  std::string text = input;
  try {
    for (const std::string& name : c.run) {
      auto step = steps.find(name);
      if (step == steps.end()) throw UserError("GAF1101", "no step '" + name + "' in the text-test runner");
      result = step->second(text, c.options);
      if (!result.sections.empty()) text = result.sections.front().text;
      if (std::any_of(result.problems.begin(), result.problems.end(), [](const Problem& p) { return !p.warning; })) break;
    }
  } catch (const UserError& e) {
    for (const ErrorInfo& i : e.all()) result.problems.push_back({i.line, i.message, false});
  } catch (const InternalError& e) {
    result.problems.push_back({0, e.what(), false});
  }
  for (Section& s : result.sections)
    if (!s.text.empty() && s.text.back() != '\n') s.text += '\n';
  return result;
}

// Every mark in the input must have its problem on that line, and every problem its mark.
void check_problems(const std::string& input, std::vector<Problem> problems) {
  std::istringstream in(input);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    for (bool warning : {false, true}) {
      std::string mark = warning ? "# warning: " : "# error: ";
      size_t at = line.find(mark);
      if (at == std::string::npos) continue;
      std::string words = line.substr(at + mark.size());
      auto hit = std::find_if(problems.begin(), problems.end(), [&](const Problem& p) {
        return p.line == number && p.warning == warning && p.text.find(words) != std::string::npos;
      });
      if (hit != problems.end()) problems.erase(hit);
      else ADD_FAILURE() << "line " << number << ": expected " << mark.substr(2) << words;
    }
  }
  for (const Problem& p : problems) ADD_FAILURE() << "line " << p.line << ": " << (p.warning ? "warning: " : "error: ") << p.text;
}

const std::string* find_section(const Result& r, const std::string& name) {
  for (const Section& s : r.sections)
    if (s.name == name) return &s.text;
  return nullptr;
}

class TextTest : public ::testing::Test {
 public:
  TextTest(const Case& c, const Steps& steps) : case_(c), steps_(steps) {}
  void TestBody() override {
    if (!case_.contract.empty()) RecordProperty("contract", case_.contract);
    ASSERT_FALSE(case_.run.empty()) << "no '# run:' line";
    Result got = run_steps(case_, case_.input, steps_);
    check_problems(case_.input, got.problems);
    for (const Section& want : case_.expected) {
      if (want.name == "same-as") {
        Result other = run_steps(case_, want.text, steps_);
        check_problems(want.text, other.problems);
        ASSERT_EQ(got.sections.size(), other.sections.size());
        for (size_t i = 0; i < got.sections.size(); i++) EXPECT_EQ(got.sections[i].text, other.sections[i].text) << got.sections[i].name;
        continue;
      }
      const std::string* text = find_section(got, want.name);
      if (text) EXPECT_EQ(want.text, *text) << "section " << want.name << "; ./dev bless rewrites it if the new text is right";
      else ADD_FAILURE() << "no section '" << want.name << "' came out";
    }
    bool marks = case_.input.find("# error: ") != std::string::npos || case_.input.find("# warning: ") != std::string::npos;
    EXPECT_TRUE(marks || !case_.expected.empty()) << "expects nothing: ./dev bless writes the sections down";
  }

 private:
  const Case& case_;
  const Steps& steps_;
};

void bless(Case& c, const Steps& steps) {
  Result got = run_steps(c, c.input, steps);
  bool failed = std::any_of(got.problems.begin(), got.problems.end(), [](const Problem& p) { return !p.warning; });
  if (failed) return;  // nothing to write down: the test says what is wrong
  if (c.expected.empty()) c.expected = got.sections;
  for (Section& s : c.expected)
    if (const std::string* text = find_section(got, s.name)) s.text = *text;
}

}  // namespace
}  // namespace gaf::text

int main(int argc, char** argv) {
  using namespace gaf::text;
  namespace fs = std::filesystem;
  ::testing::InitGoogleTest(&argc, argv);
  Steps steps;
  add_steps_ir(steps);
  add_steps_core(steps);

  fs::path root = fs::path(GAF_SOURCE_DIR) / "tests" / "text";
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".gaf") files.push_back(entry.path());
  std::sort(files.begin(), files.end());

  static std::vector<std::vector<Case>> all;  // the tests refer into it
  all.reserve(files.size());
  bool blessing = std::getenv("GAF_BLESS") != nullptr;
  for (const fs::path& file : files) {
    std::string before = gaf::read_file(file.string());
    all.push_back(read_cases(before));
    if (blessing) {
      for (Case& c : all.back()) bless(c, steps);
      std::string after = write_cases(all.back());
      if (after != before) {
        gaf::write_file(file.string(), after);
        std::printf("rewrote %s\n", fs::relative(file, root).c_str());
      }
      continue;
    }
    for (const Case& c : all.back()) {
      std::string suite = fs::relative(file, root).replace_extension().string(), name = c.name.empty() ? "case" : c.name;
      ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, file.c_str(), 1,
                              [&c, &steps]() -> ::testing::Test* { return new TextTest(c, steps); });
    }
  }
  return blessing ? 0 : RUN_ALL_TESTS();
}
