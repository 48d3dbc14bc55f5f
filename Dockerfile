# The same image as `make image` makes, for those who have a Docker engine:
#   docker build --build-arg VERSION=0.1.0 -t k8s-runner .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$VERSION" -o /k8s-runner ./cmd/k8s-runner

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /src/NOTICE /usr/share/doc/k8s-runner/
COPY --from=build /k8s-runner /usr/local/bin/k8s-runner
USER 65532:65532
EXPOSE 50051 9090
ENTRYPOINT ["/usr/local/bin/k8s-runner"]
CMD ["serve"]
