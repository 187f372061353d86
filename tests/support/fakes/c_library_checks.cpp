// Checks of libgputensor_program.so with a driver that runs no kernels (stub_libcuda.cpp). It is
// built with a sanitizer and includes the library's source.
//
//   c_library_checks fuzz FILE.gtp SCRATCH COUNT SEED    modified files are refused or harmless
//   c_library_checks sweep FILE.gtp                      driver calls fail, one in each run
//   c_library_checks threads FILE.gtp COUNT              16 threads, each with its own session
//   c_library_checks graphs FILE.gtp                     runs launch graphs, or steps without them
#include <cstdio>
#include <random>
#include <set>
#include <thread>

#include "gputensor/programs/c_library/src/library.cpp"

static long (*live)();
static long (*left)();
static long (*launches)();
static long (*graph_launches)();
static void (*refuse_graphs)(int);
static void (*fail_at)(long);

static std::string last_text;  // the error text of the last file that was used

static void need(bool is_right, const std::string& what) {
    if (is_right) return;
    fprintf(stderr, "%s (last error: %s)\n", what.c_str(), last_text.c_str());
    exit(1);
}

// Tensors in host memory, which is the stub's device memory.
struct Tensors {
    explicit Tensors(const std::vector<NativeSpec>& specs) {
        for (const NativeSpec& spec : specs) {
            const NativeType* type = native_type(spec.dtype);
            auto nbytes = size_t(NativeProgram::nbytes_of(spec));
            if (nbytes > size_t(1) << 20) {
                is_too_large = true;
                return;
            }
            void* data = aligned_alloc(256, (nbytes + 256) / 256 * 256);
            memset(data, 1, nbytes);
            memory.emplace_back(data, free);
            shapes.push_back(spec.shape);
            gputensor_tensor one{};
            one.data = data;
            one.device.type = 2;
            one.ndim = int32_t(spec.shape.size());
            one.dtype = {uint8_t(type->code), uint8_t(type->bits), 1};
            all.push_back(one);
        }
        for (size_t i = 0; i < all.size(); i++) all[i].shape = shapes[i].data();
    }
    std::vector<std::unique_ptr<void, decltype(&free)>> memory;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<gputensor_tensor> all;
    bool is_too_large = false;
};

// Opens a file, runs every function at every size, each time with new tensors, and closes it.
// Returns the first status that is not 0, or 0.
static int use(const char* path, int times = 2) {
    gputensor_program* program = nullptr;
    gputensor_session* session = nullptr;
    int status = gputensor_program_open(&program, path, nullptr, 0);
    if (!status) status = gputensor_session_open(&session, program);
    for (size_t i = 0; !status && i < size_t(times) * program->program->bindings.size(); i++) {
        NativeBinding& one = *program->program->bindings[i / size_t(times)];
        Tensors inputs(one.inputs), outputs(one.outputs);
        if (inputs.is_too_large || outputs.is_too_large) continue;
        status = gputensor_session_run(session, one.function.c_str(), int32_t(inputs.all.size()),
                                       inputs.all.data(), int32_t(outputs.all.size()),
                                       outputs.all.data(), nullptr);
        std::string text = gputensor_program_last_error();
        need(!status == text.empty(), "a status without a text");
        need(text.find('\n') == std::string::npos, "a text of two lines");
        // Products fail here, because there is no CUDA library.
        if (status == GPUTENSOR_PROGRAM_FAILED && text.find("CUDA library") != std::string::npos)
            status = 0;
    }
    last_text = gputensor_program_last_error();
    int closed = gputensor_session_close(session);
    gputensor_program_close(program);
    return status ? status : closed;
}

// ---- fuzz

static std::string content_of(const char* path) {
    std::string found;
    FILE* file = fopen(path, "rb");
    need(file, path);
    char part[1 << 16];
    while (size_t size = fread(part, 1, sizeof(part), file)) found.append(part, size);
    fclose(file);
    return found;
}

// The position of an entry in the text of a file.
struct Part {
    size_t first, nbytes;
};
static Part part_of(const std::string& text, const MappedFile& file, const char* name) {
    const FileEntry& entry = file.entry(name);
    // Entries are contiguous up to the end of the file, so that end gives the file's start.
    const char* end = nullptr;
    for (auto& one : file.entries) end = std::max(end, one.second.data + one.second.nbytes);
    return {text.size() - size_t(end - entry.data), size_t(entry.nbytes)};
}

// Writes the right hashes into a modified file, so that the checks after the hashes are reached.
static void sign(std::string& text, const Part parts[3], const std::string hashes[3]) {
    std::string found[3];
    for (int i = 1; i < 3; i++) {
        found[i] = Sha256::hex(text.data() + parts[i].first, parts[i].nbytes);
        size_t at = text.find(hashes[i], parts[0].first);
        if (at < parts[0].first + parts[0].nbytes) text.replace(at, 64, found[i]);
    }
    found[0] = Sha256::hex(text.data() + parts[0].first, parts[0].nbytes);
    size_t at = text.find(hashes[0]);
    if (at < parts[0].first) text.replace(at, 64, found[0]);
}

static void change(std::string& text, const Part& part, std::mt19937_64& random) {
    size_t at = part.first + random() % part.nbytes;
    static const char digits[] = "0123456789-\"[]{},:.en";
    switch (random() % 6) {
        case 0: text[at] = char(text[at] ^ 1 << random() % 8); break;
        case 1: text[at] = char(random()); break;
        case 2: text[at] = digits[random() % (sizeof(digits) - 1)]; break;
        case 3: {  // a word: changed by a small number or a power of two
            size_t word = part.first + (at - part.first) / 8 * 8;
            if (word + 8 > part.first + part.nbytes) break;
            int64_t value;
            memcpy(&value, &text[word], 8);
            uint64_t by = random() % 2 ? random() % 9 : uint64_t(1) << random() % 64;
            value = int64_t(uint64_t(value) + (random() % 2 ? by : ~by + 1));
            memcpy(&text[word], &value, 8);
            break;
        }
        case 4: {  // bytes from another place
            size_t from = part.first + random() % part.nbytes, size = 1 + random() % 64;
            size = std::min({size, part.first + part.nbytes - at, part.first + part.nbytes - from});
            memmove(&text[at], &text[from], size);
            break;
        }
        default: {  // a digit of the JSON
            size_t digit = text.find_first_of("0123456789", at);
            if (digit < part.first + part.nbytes) text[digit] = char('0' + random() % 10);
        }
    }
}

static int fuzz(const char* path, const char* scratch, int count, uint64_t seed) {
    std::string original = content_of(path);
    MappedFile file(path);
    const char* names[] = {"program", "launches.0", "steps.0"};
    Part parts[3];
    std::string hashes[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = part_of(original, file, names[i]);
        hashes[i] = Sha256::hex(original.data() + parts[i].first, parts[i].nbytes);
    }
    Part header = {0, parts[0].first};
    int taken = 0;
    long before = live();
    std::set<std::string> texts;
    for (int number = 0; number < count; number++) {
        std::mt19937_64 random(seed + uint64_t(number));
        std::string text = original;
        int kind = int(random() % 8);
        int changes = 1 + int(random() % 3);
        for (int i = 0; i < changes; i++)
            change(text, kind == 0 ? header : parts[kind < 3 ? 0 : kind < 5 ? 1 : 2], random);
        if (kind) sign(text, parts, hashes);
        if (random() % 50 == 0) text.resize(random() % text.size());
        FILE* out = fopen(scratch, "wb");
        need(out && fwrite(text.data(), 1, text.size(), out) == text.size(), "cannot write");
        fclose(out);
        fail_at(200000);  // stops an endless loop
        int status = use(scratch);
        fail_at(0);
        taken += !status;
        if (status) texts.insert(last_text.substr(0, 200));
        need(live() == before, "file " + std::to_string(number) + " left something behind");
    }
    printf("%d files: %d ran, %zu different texts\n", count, taken, texts.size());
    return 0;
}

// ---- sweep

static int sweep(const char* path) {
    need(!use(path), "the file does not run");
    long before = live(), failed = 0;
    // The work is quadratic in the number of calls, so a random part of the later ones is tested.
    std::mt19937_64 random(std::random_device{}());
    for (long k = 1;; k += 1 + long(random() % uint64_t(1 + k / 12))) {
        fail_at(k);
        int status = use(path);
        bool was_reached = left() == 0;
        fail_at(0);
        if (was_reached) {
            failed += status != 0;  // otherwise steps were launched instead of a graph
            need(live() == before, "call " + std::to_string(k) + " left something behind");
            need(!use(path), "the call after the failure of call " + std::to_string(k) + " fails");
        } else {
            printf("%ld of some %ld calls failed, one after the other\n", failed, k);
            return failed < 20;
        }
    }
}

// ---- graphs

static int graphs(const char* path) {
    long before = graph_launches(), kernels = launches(), steps;
    need(!use(path, 3), "does not run");
    printf("%ld graphs and %ld kernels launched; ", graph_launches() - before, launches() - kernels);
    need(graph_launches() > before && launches() == kernels, "kernels beside the graphs");
    before = graph_launches();
    refuse_graphs(1);
    need(!use(path, 3), "does not run without graphs");
    refuse_graphs(0);
    steps = launches() - kernels;
    printf("without graphs, %ld kernels\n", steps);
    need(graph_launches() == before && steps, "a graph that the driver refused");
    return 0;
}

// ---- threads

static int threads(const char* path, int count) {
    gputensor_program* program = nullptr;
    need(!gputensor_program_open(&program, path, nullptr, 0), "cannot be opened");
    std::vector<std::thread> all;
    std::atomic<int> faults{0};
    for (int number = 0; number < 16; number++)
        all.emplace_back([&, number] {
            gputensor_session* session = nullptr;
            faults += gputensor_session_open(&session, program) != 0;
            auto& bindings = program->program->bindings;
            for (int i = 0; i < count; i++) {
                NativeBinding& one = *bindings[size_t(number + i) % bindings.size()];
                Tensors inputs(one.inputs), outputs(one.outputs);
                faults += gputensor_session_run(session, one.function.c_str(),
                                                int32_t(inputs.all.size()), inputs.all.data(),
                                                int32_t(outputs.all.size()), outputs.all.data(),
                                                nullptr) != 0;
            }
            faults += gputensor_session_close(session) != 0;
        });
    for (std::thread& one : all) one.join();
    gputensor_program_close(program);
    printf("16 threads, %d runs each, %d faults\n", count, faults.load());
    return faults != 0;
}

int main(int count, char** arguments) {
    void* stub = dlopen(getenv("GPUTENSOR_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    need(stub && count > 2, "needs the stub and a file");
    live = reinterpret_cast<long (*)()>(dlsym(stub, "stub_live"));
    fail_at = reinterpret_cast<void (*)(long)>(dlsym(stub, "stub_fail_at"));
    left = reinterpret_cast<long (*)()>(dlsym(stub, "stub_left"));
    launches = reinterpret_cast<long (*)()>(dlsym(stub, "stub_launches"));
    graph_launches = reinterpret_cast<long (*)()>(dlsym(stub, "stub_graph_launches"));
    refuse_graphs = reinterpret_cast<void (*)(int)>(dlsym(stub, "stub_refuse_graphs"));
    std::string mode = arguments[1];
    if (mode == "graphs") return graphs(arguments[2]);
    if (mode == "sweep") return sweep(arguments[2]);
    if (mode == "threads") return threads(arguments[2], atoi(arguments[3]));
    return fuzz(arguments[2], arguments[3], atoi(arguments[4]), strtoull(arguments[5], nullptr, 10));
}
