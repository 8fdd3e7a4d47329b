// libFuzzer target: whatever the bytes, load returns a module or errors, and both can be printed.
#include <cstddef>
#include <cstdint>

#include "warpcheck/ir/disassemble.h"
#include "warpcheck/ir/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* text = reinterpret_cast<const char*>(data);
  const auto module = warpcheck::load("fuzz.ptx", std::string(text, size));
  if (module) {
    (void)warpcheck::disassemble(*module);
  } else {
    (void)module.error().to_string();
  }
  return 0;
}
