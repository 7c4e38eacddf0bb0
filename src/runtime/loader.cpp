// Maps the objects of codegen/cpu: a small loader for ELF x86-64 relocatables, so that a warm start needs no LLVM.
// Sections are laid out in one anonymous mapping (code pages, then data pages), relocated while writable, then made
// executable or read-only; nothing is ever both. The object may come from disk: every offset in it is checked before it
// is followed.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

#include "base/error.h"
#include "runtime/artifact.h"

namespace gaf {
namespace {

struct External {
  std::string_view name;
  void* address;
};
// What emitted code may call: the float remainder has no vector instruction, block copies may be made by LLVM.
const External kExternals[] = {
    {"fmodf", reinterpret_cast<void*>(static_cast<float (*)(float, float)>(&::fmodf))},
    {"fmod", reinterpret_cast<void*>(static_cast<double (*)(double, double)>(&::fmod))},
    {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
    {"memmove", reinterpret_cast<void*>(&std::memmove)},
    {"memset", reinterpret_cast<void*>(&std::memset)},
};

#define GAF_ELF(cond) GAF_CHECK(cond) << "malformed kernel object: "

struct Mapping {
  uint8_t* base = nullptr;
  size_t size = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base) munmap(base, size);
  }
};

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

class Loader {
 public:
  explicit Loader(const Artifact& a) : object_(a.object), page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {}

  std::shared_ptr<Mapping> run() {
    read_headers();
    lay_out();
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_RELA && s.sh_info < at_.size() && at_[s.sh_info] != kNowhere) relocate(s);
    GAF_CHECK(mprotect(map_->base, code_size_, PROT_READ | PROT_EXEC) == 0) << "cannot make kernel code executable";
    const size_t data = map_->size - code_size_;
    GAF_CHECK(data == 0 || mprotect(map_->base + code_size_, data, PROT_READ) == 0) << "cannot protect kernel data";
    return map_;
  }
  void* symbol(const std::string& name) const {
    for (const Elf64_Sym& s : symbols_)
      if (s.st_shndx != SHN_UNDEF && s.st_shndx < at_.size() && at_[s.st_shndx] != kNowhere && name_of(s) == name) {
        GAF_ELF(ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_value < sections_[s.st_shndx].sh_size)
            << "symbol " << name;
        return map_->base + at_[s.st_shndx] + s.st_value;
      }
    GAF_ELF(false) << "no symbol " << name;
    return nullptr;
  }

 private:
  static constexpr size_t kNowhere = ~size_t{0};

  template <class T>
  T read(uint64_t offset) const {
    GAF_ELF(offset <= object_.size() && sizeof(T) <= object_.size() - offset) << "offset " << offset;
    T v;
    std::memcpy(&v, object_.data() + offset, sizeof v);
    return v;
  }
  template <class T>
  std::vector<T> table(const Elf64_Shdr& s) const {
    GAF_ELF(s.sh_entsize == sizeof(T)) << "entry size " << s.sh_entsize;
    std::vector<T> out;
    for (uint64_t i = 0; i + sizeof(T) <= s.sh_size; i += sizeof(T)) out.push_back(read<T>(s.sh_offset + i));
    return out;
  }

  void read_headers() {
    const auto h = read<Elf64_Ehdr>(0);
    GAF_ELF(std::memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 && h.e_ident[EI_CLASS] == ELFCLASS64) << "not ELF-64";
    GAF_ELF(h.e_type == ET_REL && h.e_machine == EM_X86_64 && h.e_shentsize == sizeof(Elf64_Shdr))
        << "not a relocatable for x86-64";
    for (unsigned i = 0; i < h.e_shnum; i++)
      sections_.push_back(read<Elf64_Shdr>(h.e_shoff + uint64_t{i} * sizeof(Elf64_Shdr)));
    at_.assign(sections_.size(), kNowhere);
    for (const Elf64_Shdr& s : sections_) {
      const bool inside = s.sh_offset <= object_.size() && s.sh_size <= object_.size() - s.sh_offset;
      GAF_ELF(inside || s.sh_type == SHT_NOBITS) << "section size";
      if (s.sh_type != SHT_SYMTAB) continue;
      GAF_ELF(symbols_.empty() && s.sh_link < sections_.size()) << "symbol tables";
      symbols_ = table<Elf64_Sym>(s);
      strings_ = sections_[s.sh_link];
    }
  }
  std::string_view name_of(const Elf64_Sym& s) const {
    GAF_ELF(s.st_name < strings_.sh_size) << "symbol name";
    const char* p = reinterpret_cast<const char*>(object_.data()) + strings_.sh_offset + s.st_name;
    return {p, strnlen(p, strings_.sh_size - s.st_name)};
  }

  void lay_out() {
    size_t top = 0;
    auto place = [&](bool code) {
      for (size_t i = 0; i < sections_.size(); i++) {
        const Elf64_Shdr& s = sections_[i];
        if (!(s.sh_flags & SHF_ALLOC) || ((s.sh_flags & SHF_EXECINSTR) != 0) != code || s.sh_size == 0) continue;
        if (s.sh_type != SHT_PROGBITS) continue;  // notes, unwind tables: kernels neither throw nor are unwound
        GAF_ELF(!(s.sh_flags & SHF_WRITE)) << "writable section";
        const size_t align = s.sh_addralign ? s.sh_addralign : 1;
        GAF_ELF(align <= page_ && (align & (align - 1)) == 0) << "section alignment";
        top = round_up(top, align);
        at_[i] = top;
        top += s.sh_size;
        GAF_ELF(top < (size_t{1} << 30)) << "size";
      }
    };
    place(true);
    code_size_ = top = round_up(top, page_);
    GAF_ELF(code_size_ > 0) << "no code";
    place(false);
    got_ = top = round_up(top, 8);
    for (const Elf64_Shdr& s : sections_)  // room for a slot per relocation that may want one
      if (s.sh_type == SHT_RELA && s.sh_info < at_.size() && at_[s.sh_info] != kNowhere)
        for (const auto& r : table<Elf64_Rela>(s)) top += slot_needed(r) ? 16 : 0;
    map_ = std::make_shared<Mapping>();
    map_->size = round_up(top, page_);
    void* p = mmap(nullptr, map_->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    GAF_CHECK(p != MAP_FAILED) << "no memory for kernel code";
    map_->base = static_cast<uint8_t*>(p);
    for (size_t i = 0; i < sections_.size(); i++)
      if (at_[i] != kNowhere)
        std::memcpy(map_->base + at_[i], object_.data() + sections_[i].sh_offset, sections_[i].sh_size);
  }
  bool slot_needed(const Elf64_Rela& r) const {
    const auto type = ELF64_R_TYPE(r.r_info);
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX ||
           type == R_X86_64_PLT32;
  }

  uint64_t address_of(const Elf64_Sym& s) const {
    if (s.st_shndx == SHN_UNDEF) {
      for (const External& e : kExternals)
        if (e.name == name_of(s)) return reinterpret_cast<uint64_t>(e.address);
      GAF_ELF(false) << "it calls " << name_of(s);
    }
    GAF_ELF(s.st_shndx < at_.size() && at_[s.st_shndx] != kNowhere && s.st_value <= sections_[s.st_shndx].sh_size)
        << "symbol section";
    return reinterpret_cast<uint64_t>(map_->base) + at_[s.st_shndx] + s.st_value;
  }
  // The address of a word that holds `value` (a slot of the offset table).
  uint64_t slot(uint64_t value) {
    auto [it, fresh] = slots_.emplace(value, got_);
    if (fresh) {
      std::memcpy(map_->base + got_, &value, 8);
      got_ += 8;
    }
    return reinterpret_cast<uint64_t>(map_->base) + it->second;
  }

  void relocate(const Elf64_Shdr& s) {
    const Elf64_Shdr& into = sections_[s.sh_info];
    for (const auto& r : table<Elf64_Rela>(s)) {
      const auto number = ELF64_R_SYM(r.r_info);
      GAF_ELF(number < symbols_.size()) << "relocation symbol";
      const auto type = ELF64_R_TYPE(r.r_info);
      const size_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      GAF_ELF(r.r_offset <= into.sh_size && width <= into.sh_size - r.r_offset) << "relocation offset";
      uint8_t* where = map_->base + at_[s.sh_info] + r.r_offset;
      const uint64_t value = address_of(symbols_[number]), addend = static_cast<uint64_t>(r.r_addend),
                     pc = reinterpret_cast<uint64_t>(where);
      auto put32 = [&](uint64_t x) {
        const auto v = static_cast<int64_t>(x);
        GAF_ELF(v >= INT32_MIN && v <= INT32_MAX) << "relocation out of reach";
        const auto narrow = static_cast<int32_t>(v);
        std::memcpy(where, &narrow, 4);
      };
      switch (type) {
        case R_X86_64_64: {
          const uint64_t x = value + addend;
          std::memcpy(where, &x, 8);
          break;
        }
        case R_X86_64_PC64: {
          const uint64_t x = value + addend - pc;
          std::memcpy(where, &x, 8);
          break;
        }
        case R_X86_64_PLT32:
          GAF_ELF(symbols_[number].st_shndx != SHN_UNDEF || near(value, pc)) << "far call";
          put32(value + addend - pc);
          break;
        case R_X86_64_PC32: put32(value + addend - pc); break;
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: put32(slot(value) + addend - pc); break;
        default: GAF_ELF(false) << "relocation type " << type;
      }
    }
  }
  static bool near(uint64_t a, uint64_t b) {
    const auto d = static_cast<int64_t>(a - b);
    return d > -(int64_t{1} << 31) && d < (int64_t{1} << 31);
  }

  const std::vector<uint8_t>& object_;
  size_t page_, code_size_ = 0, got_ = 0;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  Elf64_Shdr strings_{};
  std::vector<size_t> at_;  // section -> offset in the mapping
  std::map<uint64_t, size_t> slots_;
  std::shared_ptr<Mapping> map_;
};

#undef GAF_ELF

}  // namespace

LoadedKernel load(const Artifact& a) {
  GAF_CHECK(a.phases >= 1 && a.scratch_bytes >= 0) << "malformed kernel artifact";
  Loader l(a);
  LoadedKernel k;
  k.scratch_bytes = a.scratch_bytes, k.in_place = a.in_place;
  k.code = l.run();
  for (int p = 0; p < a.phases; p++)
    k.phases.push_back({reinterpret_cast<RunFn>(l.symbol("gaf_run_" + std::to_string(p))),
                        reinterpret_cast<TripsFn>(l.symbol("gaf_trips_" + std::to_string(p)))});
  return k;
}

}  // namespace gaf
