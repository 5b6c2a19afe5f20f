# syntax=docker/dockerfile:1

# Build: the version of Go is that of go.mod.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.release=${VERSION}" -o /out/semserver ./cmd/semserver \
 && mkdir -p /out/data

# Run: one static file, no shell, not root.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/semserver /usr/local/bin/semserver
COPY --from=build --chown=nonroot:nonroot /out/data /data
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
