// ---- The pass as it is submitted, checked and timed

cudaGraphExec_t graph;

void capture_pass() {
    cudaGraph_t captured;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    enqueue_pass();
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&graph, captured, 0));
    CHECK(cudaGraphDestroy(captured));
    CHECK(cudaGraphUpload(graph, stream));
}

void submit_pass() {
    if (GRAPH) {
        CHECK(cudaGraphLaunch(graph, stream));
    } else {
        enqueue_pass();
    }
}

// Compares every sequence's logits with the float64 reference: ||out - reference|| / ||reference||.
bool passes_check(const char* when) {
    std::vector<float> out(BATCH * VOCAB);
    CHECK(cudaMemcpyAsync(out.data(), logits, out.size() * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    double worst = 0.0;
    for (int sequence = 0; sequence < BATCH; ++sequence) {
        double difference = 0.0, norm = 0.0;
        for (int i = 0; i < REFERENCE_LOGITS; ++i) {
            const double off = out[sequence * VOCAB + i] - REFERENCE[i];
            difference += off * off;
            norm += REFERENCE[i] * REFERENCE[i];
        }
        const double error = std::sqrt(difference / norm);
        if (std::isnan(error) || error > worst) worst = error;
    }
    const bool good = worst <= TOLERANCE;
    std::printf("%s logits %.6f %.6f, reference %.6f %.6f, error %.1e of %.0e allowed: %s\n", when, out[0], out[1],
                REFERENCE[0], REFERENCE[1], worst, TOLERANCE, good ? "PASS" : "FAIL");
    return good;
}

// Holds the stream until the host has enqueued all that is timed, so that no launch comes late.
class Hold {
public:
    static constexpr int TIMEOUT_US = 2000000;

    Hold() {
        CHECK(cudaHostAlloc(&released_, sizeof(int), cudaHostAllocMapped));
        CHECK(cudaHostAlloc(&timed_out_, sizeof(int), cudaHostAllocMapped));
        *released_ = *timed_out_ = 0;
    }
    void begin() {
        launch(measure_blocker::blocker, Shape{{1}, {1}},
               measure_blocker::BlockerArgs{released_, timed_out_, ++ticket_, TIMEOUT_US});
    }
    void release() { *static_cast<volatile int*>(released_) = ticket_; }
    bool timed_out() const { return *static_cast<volatile int*>(timed_out_) == ticket_; }

private:
    int *released_ = nullptr, *timed_out_ = nullptr, ticket_ = 0;
};

// Milliseconds that the device takes for a pass; negative if the hold ended by itself, before the host was done.
float time_pass(Hold& hold, cudaEvent_t begin, cudaEvent_t end) {
    if (FITS_QUEUE) hold.begin();
    CHECK(cudaEventRecord(begin, stream));
    submit_pass();
    CHECK(cudaEventRecord(end, stream));
    if (FITS_QUEUE) hold.release();
    CHECK(cudaStreamSynchronize(stream));
    if (FITS_QUEUE && hold.timed_out()) return -1.0f;
    float milliseconds = 0.0f;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds;
}

void warm_up() {
    const auto begun = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(500)) {
        submit_pass();
        CHECK(cudaStreamSynchronize(stream));
    }
}

void print_device_time(int passes) {
    Hold hold;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    warm_up();
    std::vector<float> times;
    for (int pass = 0; pass < passes; ++pass) {
        const float milliseconds = time_pass(hold, begin, end);
        if (milliseconds >= 0.0f) times.push_back(milliseconds);
    }
    if (times.empty()) {
        std::printf("device time unknown: the host is too busy to enqueue a pass in time\n");
        return;
    }
    std::sort(times.begin(), times.end());
    std::printf("device time %.4f ms, median of %zu passes (%.4f to %.4f)\n", times[times.size() / 2], times.size(),
                times.front(), times.back());
    if (!FITS_QUEUE) std::printf("more launches than a stream's queue takes: the time holds what the host was late by\n");
}

int run(int passes) {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    sm_count = device.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::printf("plan %s, %s, seed %lld, batch %d, on %s\n", PLAN, WORKLOAD, SEED, BATCH, device.name);

    draw_all_weights();
    allocate_activations();
    open_libraries();
    const std::vector<int> ids = draw_tokens();
    CHECK(cudaMemcpyAsync(tokens, ids.data(), ids.size() * sizeof(int), cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));

    enqueue_pass();  // also loads every kernel, which a capture and a timed pass must not have to do
    if (!passes_check("first pass")) return 1;
    if (GRAPH) capture_pass();
    if (passes > 0) print_device_time(passes);
    submit_pass();
    return passes_check("last pass") ? 0 : 1;
}

}  // namespace program

int main(int argc, char** argv) {
    const int passes = argc > 1 ? std::atoi(argv[1]) : 101;
    if (argc > 2 || passes < 0) {
        std::fprintf(stderr, "usage: %s [PASSES TO TIME, 0 TO CHECK ONLY]\n", argv[0]);
        return 2;
    }
    return program::run(passes);
}
