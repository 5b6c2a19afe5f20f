# syntax=docker/dockerfile:1

# Build: the version of Go is that of go.mod.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/semserver/semserver/internal/version.release=${VERSION}" -o /out/ ./cmd/semserver ./cmd/semctl \
 && mkdir -p /data

# Run: two static files, no shell, not root. semctl is there to be copied into the images of jobs, and
# for a look from inside: docker exec semserver semctl top
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/semserver /out/semctl /usr/local/bin/
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 7360 7362

# Inside a container, loopback is the container's own: whoever publishes the port must listen on all
# addresses. Protected mode then refuses every client that is not in the container until there is a
# password (mount a file and set SEMSERVER_PASSWORD_FILE) or until it is turned off by name
# (SEMSERVER_PROTECTED_MODE=no), which is for networks where everybody may use every semaphore:
#
#   docker run -p 127.0.0.1:7360:7360 -v semserver:/data \
#     -v ./password:/password:ro -e SEMSERVER_PASSWORD_FILE=/password semserver
ENV SEMSERVER_LISTEN=0.0.0.0:7360 \
    SEMSERVER_HTTP=0.0.0.0:7362 \
    SEMSERVER_DATA_DIR=/data

# SIGTERM, which `docker stop` sends, is a graceful stop of at most SEMSERVER_SHUTDOWN_TIMEOUT (10s)
# plus a few seconds for the engine: give `docker stop` as much (-t 20).
ENTRYPOINT ["/usr/local/bin/semserver"]
